/* A runner without Python: the protocol alone, in C, as a stranger would write it from the contracts.
 *
 * Units of pure processor time under a duty of its own keeping. It reads its control document only after a nudge, with
 * a scanner that knows the documents of agents and of the kit; a real runner brings a JSON parser.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REPORT_S 2.0
#define SHORTEST_REPORT_S 0.25

static struct {
  long seq;
  int stop, pause;
  double duty; /* below 0: none in force */
} control = {-1, 0, 0, -1.0};

static struct {
  double began, busy, idle, longest;
  long units;
} report;

static const char *workdir, *events;
static sigset_t nudges;

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static char *slurp(const char *path) {
  static char text[1 << 16];
  FILE *file = fopen(path, "r");
  if (file == NULL) return NULL;
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

static char *in_workdir(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", workdir, name);
  return path;
}

/* Replace a file of the workdir as a whole. */
static void put(const char *name, const char *text) {
  char whole[4096], part[4200];
  snprintf(whole, sizeof whole, "%s", in_workdir(name));
  snprintf(part, sizeof part, "%s.part", whole);
  FILE *file = fopen(part, "w");
  if (file == NULL) exit(1);
  fputs(text, file);
  fclose(file);
  if (rename(part, whole) != 0) exit(1);
}

/* Where the value of a key begins; NULL for none. */
static const char *value(const char *text, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\"", key);
  const char *at = text == NULL ? NULL : strstr(text, quoted);
  if (at == NULL) return NULL;
  at += strlen(quoted);
  return at + strspn(at, " :\n\t");
}

static double number(const char *text, const char *key, double otherwise) {
  const char *at = value(text, key);
  char *end;
  if (at == NULL) return otherwise;
  double found = strtod(at, &end);
  return end == at ? otherwise : found;
}

static int is_true(const char *text, const char *key) {
  const char *at = value(text, key);
  return at != NULL && strncmp(at, "true", 4) == 0;
}

/* One line about the interval that ends here; `least` keeps scraps of a second out. */
static void tell(double least) {
  double at = now(CLOCK_MONOTONIC), window = at - report.began;
  if (events != NULL && window >= least) {
    FILE *file = fopen(events, "a");
    char duty[32] = "null";
    if (control.duty >= 0) snprintf(duty, sizeof duty, "%.6g", control.duty);
    if (file != NULL) {
      double share = report.busy / window;
      fprintf(file,
              "{\"t\": %.6f, \"kind\": \"metric\", \"name\": \"gpu_duty\", \"value\": %.6f, \"data\": {\"duty\": %s, "
              "\"device\": \"cpu\", \"window_s\": %.6f, \"units\": %ld, \"idle_s\": %.6f, \"longest_unit_s\": %.6f}}\n",
              now(CLOCK_REALTIME), share > 1 ? 1 : share, duty, window, report.units, report.idle, report.longest);
      fclose(file);
    }
  }
  memset(&report, 0, sizeof report);
  report.began = at;
}

static void read_control(void) {
  const char *text = slurp(in_workdir("control.json"));
  long seq = (long)number(text, "seq", -1);
  if (seq <= control.seq) return;
  double duty = number(text, "gpu_duty", -1.0);
  if (duty != control.duty) tell(SHORTEST_REPORT_S);
  control.seq = seq;
  control.stop = is_true(text, "stop");
  control.pause = is_true(text, "pause");
  control.duty = duty;
}

/* Wait for a nudge until a moment, 0 for not at all, and act on it. */
static int nudged(double until) {
  double left = until - now(CLOCK_MONOTONIC);
  if (left < 0) left = 0;
  struct timespec limit = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  if (sigtimedwait(&nudges, NULL, &limit) < 0) return 0;
  read_control();
  return 1;
}

static void stopped(void) {
  char text[256];
  const char *module = getenv("OARBANK_MODULE");
  snprintf(text, sizeof text, "{\"reason\": \"%s/stopped\", \"fault\": \"transient\"}\n", module ? module : "module");
  put("failure.json", text);
  signal(SIGUSR1, SIG_IGN);
  exit(75);
}

static void safe_point(void) {
  nudged(0);
  while (control.pause && !control.stop) nudged(now(CLOCK_MONOTONIC) + 3600);
  if (control.stop) stopped();
}

/* Idle until the last unit, of `took` seconds, is paid for; any nudge resizes the wait. */
static void idle(double ended, double took) {
  double began = now(CLOCK_MONOTONIC);
  for (;;) {
    safe_point();
    double due = control.duty < 0 ? ended : control.duty > 0 ? ended + took * (1 - control.duty) / control.duty : 1e18;
    double at = now(CLOCK_MONOTONIC);
    if (at >= due) break;
    double wake = report.began + REPORT_S;
    nudged(due < wake ? due : wake);
    if (now(CLOCK_MONOTONIC) >= report.began + REPORT_S && due > now(CLOCK_MONOTONIC) + REPORT_S) {
      report.idle += now(CLOCK_MONOTONIC) - (began > report.began ? began : report.began);
      tell(0);
    }
  }
  report.idle += now(CLOCK_MONOTONIC) - (began > report.began ? began : report.began);
}

static double unit(double seconds) {
  double began = now(CLOCK_MONOTONIC), until = now(CLOCK_THREAD_CPUTIME_ID) + seconds;
  while (now(CLOCK_THREAD_CPUTIME_ID) < until) continue;
  double took = now(CLOCK_MONOTONIC) - began;
  report.busy += took;
  report.units += 1;
  if (took > report.longest) report.longest = took;
  return took;
}

static int doctor(void) {
  const char *platform = getenv("OARBANK_PLATFORM");
  printf("{\"runner_protocol\": {\"supported\": [1]}, \"health\": \"healthy\", \"attrs\": {\"platform\": \"%s\"}}\n",
         platform ? platform : "");
  return 0;
}

static const char *argument(int count, char **words, const char *name) {
  for (int i = 0; i + 1 < count; i++)
    if (strcmp(words[i], name) == 0) return words[i + 1];
  return NULL;
}

static void never(int number) { (void)number; }

int main(int count, char **words) {
  if (count > 1 && strcmp(words[1], "doctor") == 0) return doctor();
  workdir = argument(count, words, "--workdir");
  events = argument(count, words, "--events");
  const char *spec = slurp(argument(count, words, "--spec"));
  if (workdir == NULL || spec == NULL) return 2;
  long units = (long)number(spec, "units", 0);
  double unit_s = number(spec, "unit_s", 0.01);

  sigemptyset(&nudges);
  sigaddset(&nudges, SIGUSR1);
  sigprocmask(SIG_BLOCK, &nudges, NULL); /* first blocked, then no longer ignored: no nudge ends it */
  signal(SIGUSR1, never);
  signal(SIGTERM, SIG_IGN); /* it comes with a stop, which is answered */
  report.began = now(CLOCK_MONOTONIC);
  read_control();
  put("phase", "work\n");

  double took = 0, ended = now(CLOCK_MONOTONIC);
  for (long done = 0; done < units; done++) {
    if (took > 0) idle(ended, took);
    safe_point();
    if (now(CLOCK_MONOTONIC) >= report.began + REPORT_S) tell(0);
    took = unit(unit_s);
    ended = now(CLOCK_MONOTONIC);
  }
  char text[512];
  snprintf(text, sizeof text,
           "{\"schema\": \"%s/result@1\", \"module_version\": \"1.2.3\", \"payload\": {\"texts\": [\"%ld units\"]}}\n",
           getenv("OARBANK_MODULE"), units);
  put("result.json", text);
  tell(SHORTEST_REPORT_S);
  signal(SIGUSR1, SIG_IGN);
  return 0;
}
