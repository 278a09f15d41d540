/* SPDX-License-Identifier: Apache-2.0 */
/* Behaves like perftest's ib_write_bw and ib_send_lat, whichever name it is started by: same options, a TCP
 * meeting of server and client, the same tables. What its devices do stands in fake-perftest.conf beside it,
 * a line each:
 *
 * "device NAME BEHAVIOUR GBITS USEC": ok, or one of those in misbehave(), maybe with "server-" before it.
 *
 * "count FILE N": each client run adds N to the number in FILE, a counter of a made-up sysfs.
 *
 * "cuda", "dmabuf": it is built with CUDA, with DMA-BUF.
 *
 * "log FILE": each run adds a line to FILE, with its arguments and the processors that it may use.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <getopt.h>
#include <libgen.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char* rule =
    "---------------------------------------------------------------------------------------\n";

struct run {
  int is_latency, both_ways, tcp_port, ib_port, report_gbits, cuda, built_with_cuda, dmabuf,
      built_with_dmabuf;
  unsigned long size;
  long iterations;
  const char *device, *host;
  char behaviour[64], folder[4096];
  double gbits, usec;
};

static FILE* open_beside(const struct run* run, const char* name, const char* mode) {
  char path[8192];
  snprintf(path, sizeof path, "%s/%s", run->folder, name);
  return fopen(path, mode);
}

static void add_to_file(const char* path, long n) {
  unsigned long long value = 0;
  FILE* file = fopen(path, "r");
  if (file != NULL) {
    if (fscanf(file, "%llu", &value) != 1) value = 0;
    fclose(file);
  }
  file = fopen(path, "w");
  if (file == NULL) exit(3);
  fprintf(file, "%llu\n", value + (unsigned long long)n);
  fclose(file);
}

/* 1 when the device is known. */
static int read_configuration(struct run* run) {
  char line[5000], name[256], path[4096];
  long n = 0;
  int found = 0;
  FILE* file = open_beside(run, "fake-perftest.conf", "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    double gbits, usec;
    char behaviour[64];
    if (sscanf(line, "device %255s %63s %lf %lf", name, behaviour, &gbits, &usec) == 4 &&
        run->device != NULL && strcmp(name, run->device) == 0) {
      strcpy(run->behaviour, behaviour);
      run->gbits = gbits;
      run->usec = usec;
      found = 1;
    }
    if (strcmp(line, "cuda\n") == 0) run->built_with_cuda = 1;
    if (strcmp(line, "dmabuf\n") == 0) run->built_with_dmabuf = 1;
    if (sscanf(line, "count %4095s %ld", path, &n) == 2 && run->host != NULL) add_to_file(path, n);
  }
  fclose(file);
  return found;
}

/* "--version" and "--help" end before they come here. */
static void log_start(const struct run* run, int argc, char** argv) {
  char line[5000], path[4096], cpus[256] = "";
  FILE* file = open_beside(run, "fake-perftest.conf", "r");
  const char* order = getenv("CUDA_DEVICE_ORDER");
  path[0] = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) sscanf(line, "log %4095s", path);
  if (file != NULL) fclose(file);
  if (path[0] == 0) return;
  file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    sscanf(line, "Cpus_allowed_list: %255s", cpus);
  if (file != NULL) fclose(file);
  file = fopen(path, "a");
  if (file == NULL) exit(3);
  if (order != NULL) fprintf(file, "CUDA_DEVICE_ORDER=%s ", order);
  for (int i = 0; i < argc; ++i) fprintf(file, "%s ", argv[i]);
  fprintf(file, "on processors %s\n", cpus);
  fclose(file);
}

static int usage(const struct run* run, int full) {
  if (full)
    printf(
        "Usage:\n  start a server and wait for connection\n\nOptions:\n  -d, --ib-dev=<dev>  Use IB device "
        "<dev>\n");
  if (full && run->built_with_cuda)
    printf("      --use_cuda=<cuda device id> Use CUDA specific device for GPUDirect RDMA testing\n");
  if (full && run->built_with_dmabuf)
    printf("      --use_cuda_dmabuf Use CUDA DMA-BUF for GPUDirect RDMA testing\n");
  if (!full)
    fprintf(stderr,
            " Invalid Command or flag.\n Please check command line and run again.\n\n Parser function exited "
            "with Error\n");
  return 1;
}

static int parse(int argc, char** argv, struct run* run) {
  static const struct option options[] = {{"report_gbits", no_argument, NULL, 'G'},
                                          {"tclass", required_argument, NULL, 'T'},
                                          {"use_cuda", required_argument, NULL, 'U'},
                                          {"version", no_argument, NULL, 'V'},
                                          {"use_cuda_dmabuf", no_argument, NULL, 'M'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  const char* known = run->is_latency ? "d:i:p:s:S:Fn:x:" : "d:i:p:s:S:FD:q:bx:";
  int option;
  while ((option = getopt_long(argc, argv, known, options, NULL)) != -1) switch (option) {
      case 'd':
        run->device = optarg;
        break;
      case 'i':
        run->ib_port = atoi(optarg);
        break;
      case 'p':
        run->tcp_port = atoi(optarg);
        break;
      case 's':
        run->size = strtoul(optarg, NULL, 10);
        break;
      case 'n':
        run->iterations = atol(optarg);
        break;
      case 'b':
        run->both_ways = 1;
        break;
      case 'G':
        run->report_gbits = 1;
        break;
      case 'U':
        run->cuda = 1;
        break;
      case 'M':
        run->dmabuf = 1;
        break;
      case 'V':
        printf("Version: 6.06\n");
        exit(1);
      case 'h':
        read_configuration(run);
        exit(usage(run, 1));
      case '?':
        exit(usage(run, 0));
      default:
        break;
    }
  if (optind < argc) run->host = argv[optind];
  const int unknown = (run->cuda && !run->built_with_cuda) || (run->dmabuf && !run->built_with_dmabuf);
  return unknown ? usage(run, 0) : 0;
}

static int listen_and_accept(int tcp_port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)tcp_port)};
  const int yes = 1;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1) != 0) {
    fprintf(stderr, "Couldn't listen to port %d\n", tcp_port);
    exit(1);
  }
  return accept(listener, NULL, NULL);
}

static int connect_to(const char* host, int tcp_port) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
  char service[16];
  snprintf(service, sizeof service, "%d", tcp_port);
  if (getaddrinfo(host, service, &hints, &found) == 0) {
    const int peer = socket(AF_INET, SOCK_STREAM, 0);
    const int problem = connect(peer, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (problem == 0) return peer;
  }
  fprintf(stderr,
          "Couldn't connect to %s:%d\n Unable to open file descriptor for socket connection Unable to init "
          "the socket connection\n",
          host, tcp_port);
  exit(1);
}

static void print_table(const struct run* run, unsigned long size) {
  fputs(rule, stdout);
  printf("                    %s\n", run->is_latency ? "Send Latency Test" : "RDMA_Write BW Test");
  printf(" Dual-port       : OFF\t\tDevice         : %s\n Number of qps   : 1\t\tTransport type : IB\n",
         run->device);
  fputs(rule, stdout);
  printf(
      " local address: LID 0x01 QPN 0x0126 PSN 0x2c1a6a\n remote address: LID 0x01 QPN 0x0127 PSN "
      "0x3c1a6a\n");
  fputs(rule, stdout);
  if (run->is_latency) {
    printf(
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]  "
        " 99%% percentile[usec]   99.9%% percentile[usec] \n");
    printf(
        " %-7lu %lu          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f "
        "\t\t%-7.2f\n",
        size, (unsigned long)run->iterations, run->usec * 0.9, run->usec * 5, run->usec, run->usec * 1.02,
        0.05, run->usec * 1.5, run->usec * 3);
  } else {
    const char* unit = run->report_gbits ? "Gb/sec" : "MB/sec";
    const double rate = run->gbits * (run->both_ways ? 1.9 : 1);
    printf(" #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]\n", unit, unit);
    printf(" %-7lu    %-10lu       %-7.2lf            %-7.2lf\t\t   %-7.6lf\n", size, 93000ul, 0.0, rate,
           rate / 8e3 / (double)size * 1e6);
  }
  fputs(rule, stdout);
}

static void leave_a_child(void) {
  if (fork() != 0) return;
  setsid();
  for (;;) pause();
}

static void flood(void) {
  for (;;) puts("mlx5: got completion with error: 00000000 00000000 00000000 00000000");
}

/* 1 when the behaviour took the place of the table. */
static int misbehave(const struct run* run, const char* behaviour) {
  if (strcmp(behaviour, "hang") == 0) {
    signal(SIGTERM, SIG_IGN);
    printf(" local address: LID 0x01\n");
    fflush(stdout);
    for (;;) pause();
  }
  if (strcmp(behaviour, "crash") == 0) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into another end */
    raise(SIGSEGV);
  }
  if (strcmp(behaviour, "flood") == 0) flood();
  if (strcmp(behaviour, "fail") == 0) {
    fprintf(stderr,
            " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n");
    exit(1);
  }
  if (strcmp(behaviour, "garbage") == 0) return puts("\033[2J\xff\xfe#bytes of garbage") >= 0;
  if (strcmp(behaviour, "silent") == 0) return 1;
  if (strcmp(behaviour, "wrong-size") == 0)
    print_table(run, run->size * 2);
  else if (strcmp(behaviour, "two-tables") == 0)
    print_table(run, run->size), print_table(run, run->size);
  else if (strcmp(behaviour, "orphan") == 0)
    leave_a_child(), print_table(run, run->size);
  else
    return 0;
  return 1;
}

int main(int argc, char** argv) {
  struct run run = {.ib_port = 1, .tcp_port = 18515, .size = 65536, .iterations = 1000};
  char name[4096];
  snprintf(name, sizeof name, "%s", argv[0]);
  run.is_latency = strcmp(basename(name), "ib_send_lat") == 0;
  snprintf(name, sizeof name, "%s", argv[0]);
  snprintf(run.folder, sizeof run.folder, "%s", dirname(name));
  for (int i = 1; i < argc; ++i)
    if (strncmp(argv[i], "--use_cuda", 10) == 0) read_configuration(&run);
  if (parse(argc, argv, &run) != 0) return 1;
  log_start(&run, argc, argv);
  if (!read_configuration(&run)) {
    printf(" IB device %s not found\n Unable to find the Infiniband/RoCE device\n",
           run.device == NULL ? "" : run.device);
    return 1;
  }
  const int on_server = strncmp(run.behaviour, "server-", 7) == 0;
  const int concerns_us = on_server == (run.host == NULL);
  const char* behaviour = run.behaviour + (on_server ? 7 : 0);
  if (concerns_us && strcmp(behaviour, "deaf") == 0)
    for (;;) pause();
  if (run.host == NULL)
    printf(
        "\n************************************\n* Waiting for client to connect... "
        "*\n************************************\n");
  const int peer = run.host == NULL ? listen_and_accept(run.tcp_port) : connect_to(run.host, run.tcp_port);
  const int replaced = concerns_us && misbehave(&run, behaviour);
  /* Both sides leave together: each waits until the other one is here and done. */
  char byte = 1;
  if (write(peer, &byte, 1) != 1 || read(peer, &byte, 1) != 1) {
    fprintf(stderr,
            " Unable to read to socket/rdma_cm\nFailed to exchange data between server and clients\n");
    return 1;
  }
  if (!replaced) print_table(&run, run.size);
  return 0;
}
