package main

import (
	"cmp"
	"regexp"
	"strings"
)

// This file puts the library's texts into the words of readers who do not write Go: the people who
// type commands, and the programs that use the agent's HTTP API. Names in double quotes stay as
// they are.

// prefix is the prefix of the variables that this command reads for itself. The variables that
// describe the cluster have the same prefix, unless -env-prefix sets another one for them.
const prefix = "MORTISE"

// reader is a reader of a text.
type reader int

const (
	toOperators reader = iota // type commands
	toPrograms                // use the HTTP API
	toAll                     // both: the words of a table for all readers
)

// phrases are replaced before single names are.
var phrases = strings.NewReplacer(
	"; to enter a lock again, pass lock.Context(ctx)", ": unlock it first; it cannot be entered again from here",
	": pass context.Background() if you have none", "",
	" (differs shows them)", " (mortise doctor shows them)",
	"one at a time and with Leave", "one at a time, each stopped with SIGTERM",
	"and Leave is safe for both", "and to stop either with SIGTERM is safe",
	"wait for Ready of its successor", "wait until its successor is ready",
	"a Name of its own", "a name of its own",
	"; a request that must not wait has Request.Try", "",
	"a TryLock", "a request that does not wait",
	"; Members reports the names", "; mortise members lists the names",
	"; Status reports the voters", "; mortise status shows the voters",
	"see Health, and", "see mortise doctor, and",
	"call Lock.Upgrade", "upgrade that lock",
	"another Config.Cluster", "another label of the cluster",
	"Config.Secret (or Config.TLS)", "secret (or certificates)",
	"a node proves itself", "an instance proves itself",
)

// name matches the names of Go in a text: with a dot, or one word.
var name = regexp.MustCompile(`"[^"]*"|` +
	`\b(?:mortise|Request|Config|Node|Lock|Session|Status|Health|Member)\.[A-Z]\w*(?:\.\w+)*|` +
	`\b[A-Z][a-z]*[A-Za-z]*\b`)

// prefixOf matches the name of the library before its errors.
var prefixOf = regexp.MustCompile(`(^|: |; |\n|\()mortise: `)

// sentence returns a text of the library for a reader.
func sentence(text string, to reader) string {
	for strings.Contains(text, "mortise: ") && prefixOf.MatchString(text) { // matches may overlap
		text = prefixOf.ReplaceAllString(text, "$1")
	}
	return name.ReplaceAllStringFunc(phrases.Replace(text), func(word string) string {
		if word[0] == '"' {
			return word
		}
		return cmp.Or(inWordsOf(to, word), word)
	})
}

// phrased returns a text that consists of names and of the library's texts. Only phrases and names
// with a dot are replaced, because any name of an instance can stand in it without quotes.
func phrased(text string) string {
	return name.ReplaceAllStringFunc(phrases.Replace(text), func(word string) string {
		if word[0] != '"' && strings.Contains(word, ".") {
			return cmp.Or(inWordsOf(toOperators, word), word)
		}
		return word
	})
}

// inWordsOf returns the word for a name of Go, or "" if the word is none.
func inWordsOf(to reader, word string) string {
	of, field, dotted := strings.Cut(word, ".")
	if !dotted {
		of, field = "", word
	}
	for _, table := range []map[string]string{tables[to], tables[toOperators], tables[toAll]} {
		if own, is := table[word]; is {
			return own
		}
		if own, is := table[field]; is {
			return own
		}
	}
	switch {
	case of == "Config":
		return prefix + "_" + strings.ToUpper(snake(field))
	case of != "":
		return strings.ReplaceAll(snake(field), "_", " ")
	}
	return ""
}

func snake(name string) string { return keyOf(name, nil) }

// tables has the words for names: those of each reader for fields of requests and methods, and
// those of all readers.
var tables = [...]map[string]string{
	toOperators: {
		"Mode": "-mode", "Tree": "-tree", "Also": "-also", "Value": "-value", "Key": "the key", "Labels": "labels",
		"Exclusive": "exclusive", "Shared": "shared", "Upgradable": "upgradable", "Permits": "permits",
		"LockSticky": "a sticky lock", "Resume": "a token to resume", "Try": "-n", "Notice": "a notice",
		"MaxHold": "a longest hold", "MaxIdle": "-max-idle", "MaxWaiting": "a longest queue",
		"LockDelay":     "-lock-delay",
		"JeopardyGrace": "a grace in doubt", "Downgrade": "downgrade", "Upgrade": "upgrade", "Detach": "detach",
	},
	toPrograms: {
		"Value": "value", "Key": "key", "Mode": "mode", "Tree": "tree", "Also": "also", "Labels": "labels",
		"Exclusive": "exclusive", "Shared": "shared", "Upgradable": "upgradable", "Permits": "permits",
		"LockSticky": "sticky", "Resume": "resume",
		"Try": "wait_seconds 0", "Notice": "notice", "MaxHold": "max_hold_seconds", "MaxWaiting": "max_waiting",
		"MaxIdle":   "max_idle_seconds",
		"LockDelay": "lock_delay_seconds", "JeopardyGrace": "jeopardy_grace_seconds", "Downgrade": "/v1/downgrade",
		"Upgrade": "/v1/upgrade", "Beat": "/v1/beat", "Detach": "/v1/detach", "SetValue": "/v1/value", "Put": "/v1/put",
		"Lock.Put": "/v1/put", "Lock.Unlock": "/v1/unlock",
	},
	toAll: {
		"Config.TLS": "the certificates", "TLSGuests": prefix + "_TLS_GUESTS_FILE", "TLSPeers": prefix + "_TLS_PEERS",
		"TLSFiles": prefix + "_TLS_CERT_FILE", "RootCAs": prefix + "_TLS_CA_FILE", "ClientCAs": prefix + "_TLS_CA_FILE",
		"ServerName": "the server name", "OldSecrets": prefix + "_OLD_SECRETS_FILE",
		"Certificates": prefix + "_TLS_CERT_FILE", "JoinFunc": "its function that names the instances",
		"SessionTTL": prefix + "_SESSION_TTL",
		"Replicas":   prefix + "_REPLICAS", "Founders": prefix + "_FOUNDERS", "MaxGroupBytes": prefix + "_MAX_GROUP_BYTES",
		"MaxSessionBytes": prefix + "_MAX_SESSION_BYTES", "DirFreeBytes": prefix + "_DIR_FREE_BYTES",
		"RunDir":        prefix + "_RUN_DIR",
		"ConfigFromEnv": "the environment", "NewSession": "a further session", "LockAll": "a request for several keys",
		"DoNested":    "a call with several requests",
		"ForceUnlock": "mortise unlock --force", "Node.ForceUnlock": "mortise unlock --force", "Recover": "a recovery",
		"TryLock": "a request that does not wait", "SetValue": "a change of the value",
	},
}
