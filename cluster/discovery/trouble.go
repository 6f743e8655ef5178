package discovery

import (
	"strconv"
	"strings"
	"time"
)

const maxTroubles = 3

const headless = "; a headless Service of Kubernetes lists only pods that are ready, and none is ready before the " +
	"group is founded: set publishNotReadyAddresses: true on it"

// Trouble returns a text that the caller appends to the argument waiting. It names the entries of
// Join that lead to no instance, or says that they lead only to this one. Trouble returns "" if
// there are no such entries or if waiting is empty.
func (j *Join) Trouble(waiting string) string {
	if waiting == "" || len(j.entries) == 0 {
		return ""
	}
	var texts []string
	alone, names, empty := true, false, false
	for i := range j.entries {
		r := &j.entries[i]
		text := r.trouble(waiting)
		if text != "" {
			texts = append(texts, text)
		}
		if text != "" || r.entry.Failed != "" || r.entry.Resolved == -always || r.others(j.cfg.Self) {
			alone = false
		}
		names, empty = names || r.named(), empty || r.emptyName()
	}
	if alone {
		texts = append(texts, "Join leads to no instance but this one")
	}
	if more := len(texts) - maxTroubles; more > 0 {
		texts = append(texts[:maxTroubles], "and "+strconv.Itoa(more)+" more entries of Join")
	}
	if len(texts) == 0 {
		return ""
	}
	way := ""
	switch {
	case !empty && !(alone && names):
	case j.cfg.Kubernetes:
		way = headless
	case empty:
		way = correctName
	default:
		way = "; let it lead to the others, too"
	}
	return "; " + strings.Join(texts, "; ") + way
}

// Unresolved returns a text that names the entries which lead to no address, with the step, or "".
// A group may have been founded without them, so a misspelt entry has no other effect until
// instances move. An entry that had addresses is named after goneAfter, because its instance may be
// restarting.
func (j *Join) Unresolved(now time.Duration) string {
	var texts []string
	correct := false
	for i := range j.entries {
		r := &j.entries[i]
		if r.had != 0 && now-r.had < goneAfter || r.kind == formFunc && r.entry.Failed == "" {
			continue // a function is not misspelt: it may have no other instance to name
		}
		if text := r.trouble(""); text != "" {
			texts = append(texts, text)
			correct = correct || r.entry.Failed == ""
		}
	}
	if more := len(texts) - maxTroubles; more > 0 {
		texts = append(texts[:maxTroubles], "and "+strconv.Itoa(more)+" more entries of Join")
	}
	text := strings.Join(texts, "; ")
	if correct {
		text += correctName
	}
	return text
}

const (
	goneAfter   = 5 * time.Minute
	correctName = "; correct the name in Join, or create its records"
)

// trouble returns a text if the entry leads to no instance. It also returns a text if the entry
// could not be resolved, unless the name of the entry already occurs in the given text.
func (r *resolving) trouble(said string) string {
	switch {
	case r.entry.Failed != "":
		if strings.Contains(said, r.entry.Name) {
			return ""
		}
		if r.kind == formFunc {
			return r.entry.Unresolved()
		}
		return r.entry.Name + " cannot be resolved: " + r.entry.Failed
	case r.entry.Resolved == -always:
		return ""
	case len(r.none) > 0:
		return r.entry.Name + " lists " + r.none[0] + ", which has no address yet"
	case len(r.entry.Addrs) == 0 && r.kind == formFile:
		return r.entry.Name + " lists no instance"
	case len(r.entry.Addrs) == 0 && r.kind == formFunc:
		return r.entry.Name + " returns no instance"
	case len(r.entry.Addrs) == 0:
		return r.entry.Name + " has no addresses yet"
	}
	return ""
}

func (r *resolving) named() bool {
	return r.kind == formService || r.kind == formHost && r.next != always
}

func (r *resolving) others(self string) bool {
	for _, addr := range r.entry.Addrs {
		if addr != self {
			return true
		}
	}
	return false
}

func (r *resolving) emptyName() bool {
	return r.entry.Failed == "" && r.entry.Resolved != -always &&
		(len(r.none) > 0 || r.named() && len(r.entry.Addrs) == 0)
}
