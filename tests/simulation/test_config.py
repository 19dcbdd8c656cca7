from __future__ import annotations

import pytest
from tests.wording import Wording

from assay.errors import PlanError
from assay.simulation import SimulationConfig, configure_for_performance_with_persistence


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"width": -1, "height": 0}, ["'width'", "'height'"]),
        ({"simulation_steps": "many"}, ["'simulation_steps'"]),
        ({"seed": True}, ["'seed'"]),
        ({"widht": 5}, ["'widht'", "'width'"]),
        ({"num_agents": 0}, ["'num_agents'"]),
        ({"num_agents": 2.5}, ["'num_agents'"]),
        ({"num_agents": 3, "system_agents": 1}, ["'num_agents'", "system_agents"]),
        ({"num_agents": 5, "width": 2, "height": 2}, ["5 agents", "4 cells"]),
        ({"initial_resources": 5, "width": 2, "height": 2, "num_agents": 1}, ["5 resources", "4 cells"]),
        ({"width": 100_000, "height": 100_000}, ["10,000,000,000 cells"]),
        ({"db_pragma_profile": "turbo"}, ["'db_pragma_profile'"]),
        ({"resource_regen_rate": float("nan")}, ["'resource_regen_rate'"]),
    ],
)
def test_impossible_settings_are_refused_by_name(
    settings: dict[str, object], named: list[str], wording: Wording
) -> None:
    with pytest.raises(PlanError) as refused:
        SimulationConfig(**settings)
    assert [name for name in named if name not in str(refused.value)] == []
    wording(str(refused.value))


def test_a_setting_is_also_checked_when_it_is_changed() -> None:
    config = SimulationConfig()
    with pytest.raises(PlanError, match="'width'"):
        config.width = -3
    with pytest.raises(PlanError, match="agents"):
        config.control_agents = 100_000
    with pytest.raises(PlanError, match="'widht' is an unknown key"):
        config.widht = 3


def test_a_changed_number_of_agents_is_split_among_the_kinds_and_checked() -> None:
    config = SimulationConfig(width=3, height=3, num_agents=9, initial_resources=2)
    config.system_agents, config.independent_agents, config.control_agents = 1, 1, 7
    config.num_agents = 9
    assert config.agents_by_kind == (3, 3, 3)
    with pytest.raises(PlanError, match="10 agents do not fit"):
        config.num_agents = 10
    assert (config.num_agents, config.initial_resources) == (9, 2)


def test_one_agent_and_one_cell_are_a_world() -> None:
    config = SimulationConfig(width=1, height=1, num_agents=1, initial_resources=1)
    assert config.agents_by_kind == (1, 0, 0)


def test_agents_are_split_among_the_kinds() -> None:
    assert [SimulationConfig(num_agents=n).agents_by_kind for n in (3, 4, 5)] == [
        (1, 1, 1),
        (2, 1, 1),
        (2, 2, 1),
    ]


def test_performance_with_persistence_is_set_on_the_config_itself() -> None:
    config = SimulationConfig()
    assert configure_for_performance_with_persistence(config) is config
    assert (config.use_in_memory_db, config.persist_db_on_completion) == (True, True)
    assert config.mode == "memory_persist"
