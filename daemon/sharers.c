// SPDX-License-Identifier: GPL-2.0
/*
 * Who else has the memory of a process's shared mappings: for the words of a refusal.
 * The module knows better whether anybody has, but not who.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sharers.h"

/* A file that is looked for: as the lists of mappings name it, and as stat(2) does. */
struct wanted {
	uint64_t dev, ino;
	dev_t st_dev;
	ino_t st_ino;
	struct sharer *who;
};

struct search {
	struct wanted *file;
	size_t n;
	pid_t pid; /* whose process is looked at */
};

static size_t list_files(pid_t pid, const struct maps *maps, struct sharer *who,
			 struct wanted *file)
{
	struct stat st;
	char path[96];
	size_t i, n = 0;

	for (i = 0; i < maps->n; i++) {
		const struct vma *vma = &maps->vma[i];

		who[i] = (struct sharer){ 0 };
		if (!vma_is_shared(vma))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx",
			 (int)pid, (unsigned long long)vma->start,
			 (unsigned long long)vma->end);
		if (stat(path, &st))
			continue;
		file[n++] = (struct wanted){ vma->dev, vma->ino, st.st_dev,
					     st.st_ino, &who[i] };
	}
	return n;
}

static void found(struct search *s, struct wanted *file, bool mapped)
{
	if (!file->who->pid)
		*file->who = (struct sharer){ s->pid, mapped };
}

static void look_at_maps(struct search *s)
{
	unsigned int major, minor;
	unsigned long long ino;
	char path[32], *line = NULL;
	size_t len = 0, i;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)s->pid);
	maps = fopen(path, "re");
	while (maps && getline(&line, &len, maps) > 0) {
		if (sscanf(line, "%*x-%*x %*s %*x %x:%x %llu", &major, &minor,
			   &ino) != 3 ||
		    !ino)
			continue;
		for (i = 0; i < s->n; i++)
			if (s->file[i].ino == ino &&
			    s->file[i].dev == ((uint64_t)major << 32 | minor))
				found(s, &s->file[i], true);
	}
	free(line);
	if (maps)
		fclose(maps);
}

static void look_at_descriptors(struct search *s)
{
	struct dirent *entry;
	char path[32];
	struct stat st;
	size_t i;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)s->pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.' ||
		    fstatat(dirfd(dir), entry->d_name, &st, 0))
			continue;
		for (i = 0; i < s->n; i++)
			if (s->file[i].st_ino == st.st_ino &&
			    s->file[i].st_dev == st.st_dev)
				found(s, &s->file[i], false);
	}
	if (dir)
		closedir(dir);
}

int sharers_find(pid_t pid, const struct maps *maps, struct sharer *who)
{
	struct search s = { 0 };
	struct dirent *entry;
	DIR *dir;

	s.file = calloc(maps->n + 1, sizeof(*s.file));
	if (!s.file)
		return -ENOMEM;
	s.n = list_files(pid, maps, who, s.file);
	dir = s.n ? opendir("/proc") : NULL;
	while (dir && (entry = readdir(dir))) {
		s.pid = atoi(entry->d_name);
		if (s.pid < 1 || s.pid == pid)
			continue;
		look_at_maps(&s);
		look_at_descriptors(&s);
	}
	if (dir)
		closedir(dir);
	free(s.file);
	return 0;
}
