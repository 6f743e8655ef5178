package main

import (
	"context"
	"slices"
)

func commands() []command {
	return slices.Concat([]command{devCommand()}, ofKeys(), ofTheGroup(), besides())
}

func ofKeys() []command {
	return []command{
		{
			name: "run", args: "KEY -- COMMAND...",
			about:    "take the lock, run the command, release the lock",
			examples: "run cron/report -- ./report.sh\nrun -n cron/report -- ./report.sh",
			options:  withOptions(runFlags, runUnderLock), program: true,
		},
		{
			name: "ls", args: "[PREFIX]",
			about:    "keys that are held or waited for",
			examples: "ls\nls orders/ -o json",
			run:      list,
		},
		{
			name: "get", args: "KEY",
			about:    "the holder of a key, and its waiters in order",
			examples: "get orders/42",
			run:      get,
		},
		{
			name: "top", args: "[PREFIX]",
			about:    "a live list of the keys with the most waiters, the longest holds or the most changes of holder",
			examples: "top -by held\ntop orders/ -count 1",
			options:  withOptions(topFlags, top),
		},
		{
			name: "watch", args: "[PREFIX]",
			about:    "print a line for every event of a key",
			examples: "watch orders/",
			options:  withOptions(watchFlags, watch),
		},
		{
			name:     "audit",
			about:    "the last holds that ended by force, or whose holder stopped responding",
			examples: "audit -o json",
			run:      audit,
		},
		{
			name: "data", args: "get|put|rm KEY [DATA]",
			about:    "read, change or delete the data of a key",
			examples: "data get orders/42\ndata put orders/42 '{\"at\":7}'",
			options:  withOptions(dataFlags, data),
		},
		{
			name: "unlock", args: "--force KEY --token T|--all --reason TEXT",
			about: "end a hold that will not end by itself, or all holds of the keys with a prefix",
			examples: "unlock --force orders/42 --token 4611686018427388141 --reason \"orders-2 hangs, restarted\"\n" +
				"unlock --force jobs/ --all --reason \"the host of the jobs is gone\"",
			options: withOptions(unlockFlags, unlock),
		},
	}
}

func ofTheGroup() []command {
	return []command{
		{
			name:     "members",
			about:    "the members of the group as the leader lists them; without a leader, the instances that answer",
			examples: "members -n 0",
			options:  withOptions(membersFlags, members),
		},
		{
			name:     "sessions",
			about:    "the sessions of the group, with their age, their silence and how many keys they hold",
			examples: "sessions -n 0",
			options:  withOptions(membersFlags, sessions),
		},
		{
			name: "session", args: "end ID --reason TEXT",
			about:    "end a session with all its locks, if its process hangs or runs where it should not",
			examples: "session end 4611686018427388141 --reason \"orders-2 is unreachable and holds jobs\"",
			options:  withOptions(sessionFlags, endSession),
		},
		{
			name: "lead", args: "NAME --reason TEXT",
			about:    "move the lead to another voter, before its machine is stopped or because its disk is slow",
			examples: "lead orders-3 --reason \"the machine of orders-1 gets a new kernel\"",
			options:  withOptions(leadFlags, lead),
		},
		{
			name:     "status",
			about:    "the group as every instance sees it",
			examples: "status -join orders-0:7947,orders-1:7947 -secret-file /run/secrets/lock",
			run:      status,
		},
		{
			name: "doctor", args: "[KEY]",
			about:    "say why there is no leader or why a lock hangs, and what to do next",
			examples: "doctor\ndoctor orders/42",
			options:  withOptions(doctorFlags, doctor),
		},
		{
			name: "ping", args: "[PREFIX]",
			about:    "measure how long a lock and its unlock take from here",
			examples: "ping -n 20",
			options:  withOptions(pingFlags, ping),
		},
		{
			name: "recover", args: "GROUP",
			about:    "give up a group with directories whose majority is lost for good",
			examples: "recover 0123456789abcdef",
			run:      recoverGroup,
		},
	}
}

func besides() []command {
	return []command{
		{
			name: "secret", args: "[-allow RIGHT]... [-member] [-for NAME] [-until WHEN]",
			about:    "print a new secret, or one with fewer rights that is derived from the cluster's",
			examples: "secret\nsecret -secret-file root -allow 'lock cron/*' -for cron-host -until 2160h",
			options:  withOptions(secretFlags, secret),
		},
		{
			name:     "agent",
			about:    "run an instance with an HTTP API for programs in other languages",
			examples: "agent -join orders-0:7947 -secret-file /run/secrets/lock",
			options:  withOptions(agentFlags, agent), instance: true,
		},
		{
			name: "completion", args: "bash|zsh|fish",
			about:    "print a script that completes commands and flags in that shell",
			examples: "completion bash",
			run:      func(_ context.Context, c *call) error { return completion(c, commands()) },
		},
		{
			name:     "version",
			about:    "print the version of this command, and of Go",
			examples: "version -o json",
			run:      version,
		},
	}
}
