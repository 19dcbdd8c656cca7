/* The client agent, compiled: client HOST PORT PATH. It does what client.py does, with one poll() over all prompts.

   Text stays as JSON wrote it: prompts go into the request, and pieces of the answer into ours, without being decoded. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_PROMPTS = 256 };

typedef struct { char *at; size_t length, room; } Text;

typedef struct {
    int fd, has_head, is_chunked, is_simulated, is_over, has_usage;
    Text unread, body, said;
    long input_tokens, output_tokens;
    char model[200];
} Reply;

static void add(Text *text, const char *bytes, size_t length) {
    if (text->length + length + 1 > text->room) {
        text->room = 2 * (text->length + length + 1);
        text->at = realloc(text->at, text->room);
        if (!text->at) exit(3);
    }
    memcpy(text->at + text->length, bytes, length);
    text->at[text->length += length] = 0;
}

static void drop(Text *text, size_t length) {
    memmove(text->at, text->at + length, text->length - length + 1);
    text->length -= length;
}

/* The end of the JSON string that begins with the quote at `start`, its closing quote included. */
static const char *string_end(const char *start) {
    const char *at = start + 1;
    while (*at && *at != '"') at += *at == '\\' && at[1] ? 2 : 1;
    return *at ? at + 1 : at;
}

/* The end of any JSON value. */
static const char *value_end(const char *at) {
    int depth = 0;
    do {
        if (*at == '"') { at = string_end(at); continue; }
        if (*at == '{' || *at == '[') depth++;
        if (*at == '}' || *at == ']') { if (!depth) return at; depth--; }
        if (!depth && *at == ',') return at;
        at++;
    } while (*at && (depth || !strchr(",}]", *at)));
    return at;
}

/* Where the value of a key of the outermost object begins; NULL where there is no such key. */
static const char *value_of(const char *object, const char *key) {
    size_t length = strlen(key);
    const char *at = strchr(object, '{');
    while (at && *at && *at != '}') {
        at++;
        while (*at == ' ' || *at == ',') at++;
        if (*at != '"') return NULL;
        const char *end = string_end(at);
        int found = (size_t)(end - at) == length + 2 && !strncmp(at + 1, key, length);
        for (at = end; *at == ':' || *at == ' ';) at++;
        if (found) return at;
        at = value_end(at);
    }
    return NULL;
}

static int connected(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found)) return -1;
    int fd = -1;
    for (struct addrinfo *one = found; one && fd < 0; one = one->ai_next) {
        fd = socket(one->ai_family, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen)) { close(fd); fd = -1; }
    }
    freeaddrinfo(found);
    return fd;
}

static int sent(int fd, const char *host, const char *path, const char *prompt, size_t prompt_length,
                const char *params, size_t params_length) {
    Text body = {0}, whole = {0};
    char head[1024];
    add(&body, "{", 1);
    if (params_length > 2) { add(&body, params + 1, params_length - 2); add(&body, ",", 1); }
    const char *before = "\"messages\":[{\"role\":\"user\",\"content\":", *after = "}],\"stream\":true,\"stream_options\":{\"include_usage\":true}}";
    add(&body, before, strlen(before));
    add(&body, prompt, prompt_length);
    add(&body, after, strlen(after));
    int length = snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                          "Connection: close\r\nContent-Length: %zu\r\n\r\n", path, host, body.length);
    add(&whole, head, (size_t)length);
    add(&whole, body.at, body.length);
    size_t done = 0;
    while (done < whole.length) {
        ssize_t put = send(fd, whole.at + done, whole.length - done, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) break;
        done += (size_t)put;
    }
    int is_sent = done == whole.length;
    free(body.at);
    free(whole.at);
    return is_sent;
}

/* NULL while all is well; otherwise what is wrong. */
static const char *event(Reply *reply, const char *line, const char *id, size_t id_length, int is_heard) {
    const char *error = value_of(line, "error");
    if (error && strncmp(error, "null", 4)) return "the server reported an error";
    const char *model = value_of(line, "model"), *choices = value_of(line, "choices"), *usage = value_of(line, "usage");
    if (model && *model == '"') {
        size_t length = (size_t)(string_end(model) - model);
        if (length < sizeof reply->model) { memcpy(reply->model, model, length); reply->model[length] = 0; }
    }
    const char *reason = choices ? value_of(choices, "finish_reason") : NULL;
    if (reason && *reason == '"') reply->is_over = 1;
    const char *delta = choices ? value_of(choices, "delta") : NULL;
    const char *content = delta && *delta == '{' ? value_of(delta, "content") : NULL;
    if (content && *content == '"') {
        size_t length = (size_t)(string_end(content) - content);
        if (length > 2) add(&reply->said, content + 1, length - 2);
        if (length > 2 && is_heard) {
            printf("{\"id\": %.*s, \"delta\": %.*s}\n", (int)id_length, id, (int)length, content);
            fflush(stdout);
        }
    }
    if (usage && *usage == '{') {
        const char *input = value_of(usage, "prompt_tokens"), *output = value_of(usage, "completion_tokens");
        if (input) reply->input_tokens = strtol(input, NULL, 10);
        if (output) reply->output_tokens = strtol(output, NULL, 10);
        reply->has_usage = 1;
    }
    return NULL;
}

static const char *taken(Reply *reply, const char *id, size_t id_length, int is_heard) {
    if (!reply->has_head) {
        char *end = reply->unread.at ? strstr(reply->unread.at, "\r\n\r\n") : NULL;
        if (!end) return NULL;
        *end = 0;
        if (!strstr(reply->unread.at, " 200 ")) return "the server did not answer 200";
        reply->is_chunked = strcasestr(reply->unread.at, "transfer-encoding: chunked") != NULL;
        reply->is_simulated = strcasestr(reply->unread.at, "x-assay-simulated:") != NULL;
        reply->has_head = 1;
        drop(&reply->unread, (size_t)(end + 4 - reply->unread.at));
    }
    if (!reply->is_chunked) {
        add(&reply->body, reply->unread.at, reply->unread.length);
        reply->unread.length = 0;
    }
    while (reply->is_chunked && reply->unread.length) {
        char *end = strstr(reply->unread.at, "\r\n");
        if (!end) break;
        size_t length = strtoul(reply->unread.at, NULL, 16), head = (size_t)(end + 2 - reply->unread.at);
        if (reply->unread.length < head + length + 2) break;
        add(&reply->body, reply->unread.at + head, length);
        drop(&reply->unread, head + length + 2);
    }
    char *end;
    while (reply->body.length && (end = memchr(reply->body.at, '\n', reply->body.length))) {
        *end = 0;
        if (!strncmp(reply->body.at, "data:", 5)) {
            const char *told = reply->body.at + 5 + strspn(reply->body.at + 5, " ");
            const char *fault = NULL;
            if (!strncmp(told, "[DONE]", 6)) reply->is_over = 1;
            else fault = event(reply, told, id, id_length, is_heard);
            if (fault) return fault;
        }
        drop(&reply->body, (size_t)(end + 1 - reply->body.at));
    }
    return NULL;
}

static const char *streamed(Reply *replies, int count, const char *id, size_t id_length) {
    struct pollfd watched[MOST_PROMPTS];
    char bytes[65536];
    int open = count;
    for (int n = 0; n < count; n++) watched[n] = (struct pollfd){replies[n].fd, POLLIN, 0};
    while (open) {
        if (poll(watched, (nfds_t)count, -1) < 0 && errno != EINTR) return "poll failed";
        for (int n = 0; n < count; n++) {
            if (watched[n].fd < 0 || !watched[n].revents) continue;
            ssize_t got = recv(watched[n].fd, bytes, sizeof bytes, 0);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return "the connection was lost";
            if (!got && !replies[n].is_over) return "the connection ended before the answer did";
            if (!got) { watched[n].fd = -1; open--; continue; }
            add(&replies[n].unread, bytes, (size_t)got);
            const char *fault = taken(&replies[n], id, id_length, n == 0);
            if (fault) return fault;
        }
    }
    return NULL;
}

static void answer(const char *line, const char *host, const char *port, const char *path) {
    static Reply replies[MOST_PROMPTS];
    const char *id = value_of(line, "id"), *input = value_of(line, "input"), *params = value_of(line, "params");
    if (!id || !input) { fprintf(stderr, "this is no request: %s\n", line); exit(2); }
    size_t id_length = (size_t)(value_end(id) - id), params_length = params ? (size_t)(value_end(params) - params) : 0;
    const char *fault = NULL, *prompt = *input == '[' ? input + 1 : input;
    int count = 0;
    while (!fault && count < MOST_PROMPTS) {
        while (*prompt == ' ' || *prompt == ',') prompt++;
        if (*prompt == ']' || !*prompt) break;
        const char *end = value_end(prompt);
        Reply *reply = &replies[count];
        memset(reply, 0, sizeof *reply);
        reply->fd = connected(host, port);
        if (reply->fd < 0) { fault = "the server cannot be reached"; break; }
        count++;
        if (!sent(reply->fd, host, path, prompt, (size_t)(end - prompt), params, params_length)) fault = "the request could not be sent";
        prompt = end;
        if (*input != '[') break;
    }
    if (!fault) fault = streamed(replies, count, id, id_length);
    if (fault) {
        printf("{\"id\": %.*s, \"error\": \"%s\"}\n", (int)id_length, id, fault);
    } else {
        long in = 0, out = 0;
        int is_simulated = 0, has_usage = 1;
        printf("{\"id\": %.*s, \"output\": %s", (int)id_length, id, count > 1 ? "[" : "");
        for (int n = 0; n < count; n++) {
            printf("%s\"%s\"", n ? ", " : "", replies[n].said.at ? replies[n].said.at : "");
            in += replies[n].input_tokens;
            out += replies[n].output_tokens;
            is_simulated |= replies[n].is_simulated;
            has_usage &= replies[n].has_usage;
        }
        printf("%s, \"usage\": {", count > 1 ? "]" : "");
        if (has_usage) printf("\"input_tokens\": %ld, \"output_tokens\": %ld, ", in, out);
        printf("\"api_calls\": %d}, \"model\": %s, \"simulated\": %s}\n",
               count, replies[0].model[0] ? replies[0].model : "null", is_simulated ? "true" : "false");
    }
    fflush(stdout);
    for (int n = 0; n < count; n++) {
        close(replies[n].fd);
        free(replies[n].unread.at);
        free(replies[n].body.at);
        free(replies[n].said.at);
    }
}

int main(int count, char **words) {
    char *line = NULL;
    size_t size = 0;
    if (count != 4) { fprintf(stderr, "usage: client HOST PORT PATH\n"); return 2; }
    while (getline(&line, &size, stdin) > 0) answer(line, words[1], words[2], words[3]);
    free(line);
    return 0;
}
