/* A server of streamed chat completions whose times are known: one thread, epoll, a timer of the kernel's.
 *
 *   server PORT [TTFT_US ITL_US TOKENS [SLOTS]]
 *
 * POST anything       a stream of TOKENS pieces; the first TTFT after the request arrived in the kernel, the others ITL apart;
 *                     without delays all in one write. With SLOTS only so many are served at a time, others queue.
 * GET /arrivals       when each request since the truth was last told arrived: nanoseconds of the monotonic clock, 8 bytes each.
 * GET /truth          what it did since it was asked last, as JSON: times of its own writes, in microseconds.
 * GET anything else   the models that there are, as tools ask before they begin; not counted.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 65536, REQUEST = 16384, SEEN = 1 << 22 };

typedef struct {
    char in[REQUEST];
    int used, sent, busy;
    int64_t arrived, first, last, due;
} Connection;

static Connection *connections[CONNECTIONS];
static int64_t ttft, itl;
static int tokens = 16, slots, serving;
static int queue[CONNECTIONS], queue_head, queue_tail;
static int heap[CONNECTIONS], heaped;
static int alarm_fd, epoll_fd;
static uint32_t *first_seen, *gap_seen;
static int64_t firsts, gaps, requests, *arrived_at;

static char head[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
static char role[512], piece[512], tail[1024], whole[65536];
static int role_size, piece_size, tail_size, whole_size;

static int64_t clock_of(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int chunk(char *to, const char *text) { return sprintf(to, "%zx\r\n%s\r\n", strlen(text), text); }

static void prepare(void) {
    const char *about = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,";
    char text[1024];
    sprintf(text, "%s\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n", about);
    role_size = chunk(role, text);
    sprintf(text, "%s\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n", about);
    piece_size = chunk(piece, text);
    sprintf(text, "%s\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", about);
    tail_size = chunk(tail, text);
    sprintf(text, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\ndata: [DONE]\n\n", tokens, tokens + 5);
    tail_size += chunk(tail + tail_size, text);
    tail_size += sprintf(tail + tail_size, "0\r\n\r\n");
    whole_size = sprintf(whole, "%s", head);
    memcpy(whole + whole_size, role, role_size), whole_size += role_size;
    for (int i = 0; i < tokens; i++) memcpy(whole + whole_size, piece, piece_size), whole_size += piece_size;
    memcpy(whole + whole_size, tail, tail_size), whole_size += tail_size;
}

static int earlier(int a, int b) { return connections[heap[a]]->due < connections[heap[b]]->due; }
static void swap(int a, int b) { int t = heap[a]; heap[a] = heap[b]; heap[b] = t; }

static void push(int fd) {
    int i = heaped++;
    heap[i] = fd;
    while (i && earlier(i, (i - 1) / 2)) swap(i, (i - 1) / 2), i = (i - 1) / 2;
}

static void sink(int i) {
    for (;;) {
        int least = i, left = 2 * i + 1, right = left + 1;
        if (left < heaped && earlier(left, least)) least = left;
        if (right < heaped && earlier(right, least)) least = right;
        if (least == i) return;
        swap(i, least), i = least;
    }
}

static void drop_timer(int fd) {
    for (int i = 0; i < heaped; i++)
        if (heap[i] == fd) {
            heap[i] = heap[--heaped];
            sink(i);
            while (i && earlier(i, (i - 1) / 2)) swap(i, (i - 1) / 2), i = (i - 1) / 2;
            return;
        }
}

static void out(int fd, const char *data, int size) {
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN) return;
            usleep(100);
            continue;
        }
        data += n, size -= n;
    }
}

static void serve(int fd) {
    Connection *c = connections[fd];
    c->sent = 0;
    if (!ttft && !itl) {
        out(fd, whole, whole_size);
        c->busy = 0;
        return;
    }
    serving++;
    int64_t now = clock_of(CLOCK_MONOTONIC);
    c->due = (slots ? now : c->arrived) + ttft;
    push(fd);
}

static void next_of_queue(void) {
    serving--;
    while (slots && serving < slots && queue_head != queue_tail) {
        int fd = queue[queue_head];
        queue_head = (queue_head + 1) % CONNECTIONS;
        if (fd >= 0 && connections[fd] && connections[fd]->busy) serve(fd);
    }
}

static void write_piece(int fd) {
    Connection *c = connections[fd];
    char text[2048];
    int size = 0, is_first = c->sent == 0;
    if (is_first) {
        memcpy(text, head, size = sizeof head - 1);
        memcpy(text + size, role, role_size), size += role_size;
    }
    memcpy(text + size, piece, piece_size), size += piece_size;
    c->sent++;
    if (c->sent == tokens) memcpy(text + size, tail, tail_size), size += tail_size;
    int64_t now = clock_of(CLOCK_MONOTONIC);
    out(fd, text, size);
    if (is_first) first_seen[firsts++ % SEEN] = (now - c->arrived) / 100;
    else gap_seen[gaps++ % SEEN] = (now - c->last) / 100;
    c->last = now;
    if (c->sent == tokens) {
        heap[0] = heap[--heaped];
        sink(0);
        c->busy = 0;
        next_of_queue();
    } else {
        c->due += itl;
        sink(0);
    }
}

static int by_size(const void *a, const void *b) { return (*(uint32_t *)a > *(uint32_t *)b) - (*(uint32_t *)a < *(uint32_t *)b); }

static int quantiles(char *to, const char *name, uint32_t *seen, int64_t n) {
    if (n > SEEN) n = SEEN;
    if (!n) return sprintf(to, "\"%s\":null", name);
    qsort(seen, n, sizeof *seen, by_size);
    return sprintf(to, "\"%s\":{\"n\":%ld,\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}", name, (long)n, seen[(int64_t)(n * 0.5)] / 10.0,
                   seen[(int64_t)(n * 0.99)] / 10.0, seen[n - 1] / 10.0);
}

static void tell_truth(int fd) {
    char body[1024], text[2048];
    int size = sprintf(body, "{\"requests\":%ld,", (long)requests);
    size += quantiles(body + size, "ttft_us", first_seen, firsts);
    size += sprintf(body + size, ",");
    size += quantiles(body + size, "itl_us", gap_seen, gaps);
    size += sprintf(body + size, "}");
    int whole_text = sprintf(text, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", size, body);
    out(fd, text, whole_text);
    firsts = gaps = requests = 0;
}

static void tell_arrivals(int fd) {
    char text[256];
    int64_t size = (requests < SEEN ? requests : SEEN) * (int64_t)sizeof *arrived_at;
    out(fd, text, sprintf(text, "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: %ld\r\n\r\n", (long)size));
    out(fd, (char *)arrived_at, (int)size);
}

static void tell_models(int fd) {
    static const char models[] = "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\"}]}";
    char text[512];
    out(fd, text, sprintf(text, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s", sizeof models - 1, models));
}

static void leave(int fd) {
    Connection *c = connections[fd];
    drop_timer(fd);
    if (c->busy && (ttft || itl)) {
        int waits = 0;
        for (int i = queue_head; i != queue_tail; i = (i + 1) % CONNECTIONS)
            if (queue[i] == fd) queue[i] = -1, waits = 1;
        if (!waits) next_of_queue();
    }
    close(fd);
    free(c);
    connections[fd] = NULL;
}

static void take(int fd, int64_t offset) {
    Connection *c = connections[fd];
    char control[64];
    struct iovec part = {c->in + c->used, REQUEST - 1 - c->used};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &message, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return leave(fd);
    c->used += n, c->in[c->used] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end) return;
    char *length = strcasestr(c->in, "content-length:");
    int body = length && length < end ? atoi(length + 15) : 0;
    if (c->used < end + 4 - c->in + body) return;
    c->used = 0;
    if (!strncmp(c->in, "GET /truth", 10)) return tell_truth(fd);
    if (!strncmp(c->in, "GET /arrivals", 13)) return tell_arrivals(fd);
    if (!strncmp(c->in, "GET ", 4)) return tell_models(fd);
    c->arrived = clock_of(CLOCK_MONOTONIC);
    for (struct cmsghdr *m = CMSG_FIRSTHDR(&message); m; m = CMSG_NXTHDR(&message, m))
        if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec *t = (struct timespec *)CMSG_DATA(m);
            c->arrived = (int64_t)t->tv_sec * 1000000000 + t->tv_nsec - offset;
        }
    arrived_at[requests++ % SEEN] = c->arrived;
    c->busy = 1;
    if (slots && serving >= slots) queue[queue_tail] = fd, queue_tail = (queue_tail + 1) % CONNECTIONS;
    else serve(fd);
}

static void welcome(int listener) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= CONNECTIONS) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (ttft || itl) setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
        connections[fd] = calloc(1, sizeof(Connection));
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
}

int main(int count, char **given) {
    if (count < 2) return fprintf(stderr, "server PORT [TTFT_US ITL_US TOKENS [SLOTS]]\n"), 2;
    ttft = count > 2 ? atoll(given[2]) * 1000 : 0;
    itl = count > 3 ? atoll(given[3]) * 1000 : 0;
    tokens = count > 4 ? atoi(given[4]) : 16;
    slots = count > 5 ? atoi(given[5]) : 0;
    first_seen = malloc(SEEN * sizeof *first_seen), gap_seen = malloc(SEEN * sizeof *gap_seen);
    arrived_at = malloc(SEEN * sizeof *arrived_at);
    prepare();
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(given[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return perror("listen"), 2;
    epoll_fd = epoll_create1(0), alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = alarm_fd;
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, alarm_fd, &event);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        int n = epoll_wait(epoll_fd, events, 256, -1);
        int64_t offset = clock_of(CLOCK_REALTIME) - clock_of(CLOCK_MONOTONIC);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            uint64_t rang;
            if (fd == listener) welcome(listener);
            else if (fd == alarm_fd) { if (read(alarm_fd, &rang, sizeof rang) < 0) continue; }
            else if (connections[fd]) take(fd, offset);
        }
        while (heaped && connections[heap[0]]->due <= clock_of(CLOCK_MONOTONIC)) write_piece(heap[0]);
        int64_t due = heaped ? connections[heap[0]]->due : 0;
        struct itimerspec when = {.it_value = {due / 1000000000, due % 1000000000}};
        timerfd_settime(alarm_fd, TFD_TIMER_ABSTIME, &when, NULL);
    }
}
