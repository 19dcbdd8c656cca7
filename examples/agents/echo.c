/* The smallest agent in C: it answers every request with its own input.
   A request is one line {"id": "1", "input": ..., "params": {...}}, an answer is {"id": "1", "output": ...}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The end of the JSON value that begins at `at`. */
static const char *value_end(const char *at) {
    int depth = 0, in_text = 0;
    for (; *at; at++) {
        if (in_text) {
            if (*at == '\\' && at[1]) at++;
            else if (*at == '"') in_text = 0;
        } else if (*at == '"') in_text = 1;
        else if (*at == '{' || *at == '[') depth++;
        else if (*at == '}' || *at == ']') { if (depth-- == 0) return at; }
        else if (*at == ',' && depth == 0) return at;
    }
    return at;
}

/* The value of a key of the outermost object; its length is 0 where there is none. */
static const char *value_of(const char *line, const char *key, size_t *length) {
    const char *at = strchr(line, '{');
    *length = 0;
    while (at && *at && *at != '}') {
        const char *name = strchr(at + 1, '"');
        if (!name) return "";
        const char *colon = strchr(name + 1, ':'), *value = colon + 1;
        if (!colon) return "";
        while (*value == ' ') value++;
        const char *end = value_end(value);
        if (!strncmp(name + 1, key, strlen(key)) && name[1 + strlen(key)] == '"') {
            *length = (size_t)(end - value);
            return value;
        }
        at = end;
    }
    return "";
}

int main(void) {
    char *line = NULL;
    size_t size = 0, id_length, input_length;
    while (getline(&line, &size, stdin) > 0) {
        const char *id = value_of(line, "id", &id_length), *input = value_of(line, "input", &input_length);
        printf("{\"id\": %.*s, \"output\": %.*s}\n", (int)id_length, id, (int)input_length, input);
        fflush(stdout);
    }
    free(line);
    return 0;
}
