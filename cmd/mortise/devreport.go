package main

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// This file is what dev and the processes of its instances say to each other.

// devName is the argument 0 of the process of an instance.
const devName = "mortise dev: instance"

// devTTL is short, so that the end of a killed holder is seen soon.
const devTTL = 2 * time.Second

// Orders to an instance.
const (
	orderCut   = "cut"
	orderHeal  = "heal"
	orderWrote = "wrote" // the answer to a report of the kind devWrites
)

type devInstance struct {
	Name, Bind, Dir, Secret string
	Join, Founders          []string
	Voters                  int
	Work                    bool
}

func (i devInstance) config(hooks *mortise.Hooks, logger *slog.Logger) mortise.Config {
	return mortise.Config{Name: i.Name, Bind: i.Bind, Dir: i.Dir, Secret: i.Secret, Join: i.Join, Founders: i.Founders,
		Voters: i.Voters, SessionTTL: devTTL,
		Grace: -1, // the secret is new, so there was no earlier group
		// The directory is small and removed at the end.
		DirFreeBytes: -1, Hooks: hooks, Logger: logger}
}

type devKind string

// Kinds of reports.
const (
	devStarted devKind = "started" // the ID of the instance is in Text
	devReady   devKind = "ready"   // it can get locks now
	devGranted devKind = "granted" // it has Token, after Waited, and begins the report with it
	devWrites  devKind = "writes"  // it writes the report with Token
	devDone    devKind = "done"    // it has released Token
	devLost    devKind = "lost"    // it knows that Token is lost
	devFailed  devKind = "failed"  // it ends, for the reason in Text
)

type devReport struct {
	Kind   devKind
	Token  mortise.Token `json:",omitempty"`
	Waited time.Duration `json:",omitempty"`
	Text   string        `json:",omitempty"`
}

// reporter writes reports. It is safe for concurrent use.
type reporter struct {
	mu  sync.Mutex // guards out
	out *json.Encoder
}

func (r *reporter) say(report devReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(report) // fails if the parent has ended, and then this process ends too
}

const (
	devLabel  = "mortise" // Config.Cluster
	devVoters = 7         // Config.Voters is at most 7
	devPrefix = "demo/"   // dev prints what happens to keys with this prefix
	devKey    = devPrefix + "report"
)
