/* The agent in C. It looks only for what it needs: the id, to be sent back as it came, and the input. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a key's value, quotes included; its length is 0 where there is none. */
static const char *text_of(const char *line, const char *key, size_t *length) {
    const char *start = strstr(line, key), *end;
    *length = 0;
    if (!start) return "";
    start += strlen(key);
    for (end = start + 1; *end && *end != '"'; end++)
        if (*end == '\\' && end[1]) end++;
    *length = (size_t)(end - start) + 1;
    return start;
}

static unsigned long long sum_of(const char *text, size_t length) {
    unsigned long long total = 0;
    char *at = (char *)text;
    while (at < text + length)
        if (isdigit((unsigned char)*at)) total += strtoull(at, &at, 10);
        else at++;
    return total;
}

int main(void) {
    char *line = NULL;
    size_t size = 0, id_length, length;
    while (getline(&line, &size, stdin) > 0) {
        const char *id = text_of(line, "\"id\":", &id_length), *input = text_of(line, "\"input\":", &length);
        printf("{\"id\": %.*s, \"output\": \"%llu\"}\n", (int)id_length, id, sum_of(input, length));
        fflush(stdout);
    }
    free(line);
    return 0;
}
