// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: everything at once, against what linux/twheel.h promises
 */
#include <getopt.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fuzz.h"

#define SOLOS		2

struct fuzz *fuzz;

/* Calls made while nobody else was there. */
static __u64 budget_calls;

/**
 * struct options - what was asked for
 * @seconds:	how long to run
 * @what:	the actors: solo, shared, budget or all
 * @corpus:	a directory with programs
 * @keep:	where to leave programs that reach something new, or NULL
 * @program:	a program to replay, or NULL
 * @merge:	run what is in @corpus, and keep what is needed to reach all that it does
 */
struct options {
	unsigned int	seconds;
	const char	*what;
	const char	*corpus;
	const char	*keep;
	const char	*program;
	bool		merge;
};

static void usage(void)
{
	fprintf(stderr,
		"usage: fuzz-device [-t SECONDS] [-n PROGRAMS] [-s SEED] [-w solo|shared|budget|all]\n"
		"                   [-c CORPUS] [-k KEEP] [-p PROGRAM] [-m] [-x ACTOR,...]\n"
		"-n: so many for each solo actor, and nothing but those: the same each time;\n"
		"-k: where to leave programs that reach something new; -p: one to replay;\n"
		"-m: of those in CORPUS, leave those in KEEP that together reach as much;\n"
		"-x: actors of the shared part to leave out\n");
	exit(2);
}

static struct options parse_options(int argc, char **argv)
{
	struct options options = { .seconds = 60, .what = "all", .corpus = "corpus" };
	int option;

	while ((option = getopt(argc, argv, "t:n:s:w:c:k:p:x:m")) != -1) {
		switch (option) {
		case 't':
			options.seconds = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			fuzz->programs = strtoull(optarg, NULL, 0);
			options.what = "solo";
			if (!fuzz->programs)
				usage();
			break;
		case 's':
			fuzz->seed = strtoull(optarg, NULL, 0);
			break;
		case 'w':
			options.what = optarg;
			break;
		case 'c':
			options.corpus = optarg;
			break;
		case 'k':
			options.keep = optarg;
			break;
		case 'p':
			options.program = optarg;
			break;
		case 'm':
			options.merge = true;
			options.what = "solo";
			break;
		case 'x':
			snprintf(fuzz->without, sizeof(fuzz->without), "%s", optarg);
			break;
		default:
			usage();
		}
	}
	if (optind != argc || !options.seconds)
		usage();
	return options;
}

/* Starts an actor in a process of its own. */
static pid_t start_actor(const struct options *options, unsigned int number)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (options->program)
		solo_replay(options->program);
	else if (number < SOLOS)
		run_solo(number, options->merge, options->keep);
	else
		run_shared();
	exit(0);
}

static bool is_asked(const struct options *options, const char *what)
{
	return !strcmp(options->what, what) || !strcmp(options->what, "all");
}

/* Waits for all of them. Returns whether each has succeeded. */
static bool wait_all(void)
{
	bool good = true;
	int status;

	while (wait(&status) > 0) {
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			continue;
		if (!__atomic_exchange_n(&fuzz->failed, 1, __ATOMIC_SEQ_CST))
			printf("# FOUND: an actor has ended with status %x\n", status);
		good = false;
	}
	return good && !fuzz->failed;
}

/* The actors that measure what others must not notice come first, with nobody else there. */
static bool run_budgets(const struct options *options)
{
	pid_t pid;

	if (!is_asked(options, "budget") || options->program)
		return true;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		check_budgets();
		exit(0);
	}
	return wait_all();
}

static bool run_actors(const struct options *options)
{
	bool alone = options->program || options->merge;
	unsigned int i;

	if (!run_budgets(options))
		return false;
	budget_calls = fuzz->calls;
	/* The budgets take long on a slow machine: the others have all the time asked for. */
	fuzz->end = fuzz->programs ? -1ULL : now_ns() + options->seconds * SEC;
	groups_open();
	for (i = 0; i <= SOLOS; i++)
		if (alone ? !i : is_asked(options, i < SOLOS ? "solo" : "shared"))
			start_actor(options, i);
	return wait_all();
}

int main(int argc, char **argv)
{
	const char *seed = getenv("TWHEEL_SEED");
	struct options options;
	bool good;

	fuzz = mmap(NULL, sizeof(*fuzz), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fuzz == MAP_FAILED)
		return 1;
	fuzz->seed = seed ? strtoull(seed, NULL, 0) : mix_seed(now_ns(), getpid()) % 1000000007;
	options = parse_options(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..1\n# seed %llu\n", fuzz->seed);
	fflush(stdout);
	corpus_load(options.corpus);
	good = run_actors(&options);
	printf("# %llu places and kinds of answers\n", fuzz->covered);
	printf("# %llu rounds\n", fuzz->rounds);
	printf("# %llu calls fuzzed\n", fuzz->calls - budget_calls);
	printf("%s 1 nothing was found\n", good ? "ok" : "not ok");
	return good ? 0 : 1;
}
