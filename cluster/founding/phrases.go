package founding

import (
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file contains parts of texts.

func nameOf(name, addr string) string {
	if name == "" {
		return addr
	}
	return strconv.Quote(name) + " (" + addr + ")"
}

func some(all []string) string {
	if len(all) > 4 {
		return strings.Join(all[:4], ", ") + " and " + strconv.Itoa(len(all)-4) + " more"
	}
	return strings.Join(all, ", ")
}

func count(have, want int) string {
	return strconv.Itoa(have) + " of " + strconv.Itoa(want) + " instances (Replicas: " + strconv.Itoa(want) + ")"
}

func groupName(group uint64) string { return nodeid.Hex(group) }

func clockText(unixMS int64) string {
	return time.UnixMilli(unixMS).UTC().Format("2006-01-02 15:04:05 UTC")
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func orEmpty(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
