"""Train a tiny language model with TRL's GRPOTrainer: python trl.py (needs torch, transformers, trl)"""

# ruff: noqa: E402

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

# Run as a script, this file would hide the package of the same name.
sys.path[:] = [
    folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent
]

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import GRPOConfig, GRPOTrainer

from assay.builtin.experiments.rl.tasks import TASKS


def train(task_name, samples, group_size, seed, on_group):
    torch.set_num_threads(1)
    set_seed(seed)
    task = TASKS[task_name]
    words = {word: place for place, word in enumerate((*task.vocabulary, "<pad>"))}
    tokens = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokens.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens, eos_token=task.vocabulary[task.end], pad_token="<pad>"
    )
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "max_position_embeddings": 32,
    }
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    ends = {"eos_token_id": task.end, "pad_token_id": len(task.vocabulary), "bos_token_id": None}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(words), **sizes, **heads, **ends))
    prompts = {" ".join(task.vocabulary[token] for token in prompt): prompt for prompt in task.prompts}

    def reward(prompts_asked, completion_ids):
        # The model can say <pad>, which is no word of the task.
        rewards = [
            task.reward(prompts[p], ids) if max(ids, default=len(words)) < len(task.vocabulary) else 0.0
            for p, ids in zip(prompts_asked, completion_ids, strict=True)
        ]
        on_group(sum(rewards) / len(rewards))
        return rewards

    def judge(prompts, completion_ids, **_):
        return reward(prompts, completion_ids)

    with TemporaryDirectory() as folder:
        settings = GRPOConfig(
            folder, seed=seed, learning_rate=0.002, lr_scheduler_type="constant", max_steps=4 * (samples // group_size),
            per_device_train_batch_size=group_size, num_generations=group_size, num_iterations=4, steps_per_generation=1,
            max_completion_length=task.most_tokens, beta=0.0, use_cpu=True, bf16=False, report_to="none",
            save_strategy="no", logging_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        data = Dataset.from_list([{"prompt": text} for text in prompts])
        GRPOTrainer(model, judge, args=settings, train_dataset=data, processing_class=tokenizer).train()
    return model.num_parameters()


if __name__ == "__main__":
    train("arithmetic", 1000, 8, 42, print)
