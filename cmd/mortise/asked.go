package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// This file reads the requests of the HTTP API, and has the text of a lock in its answers.

const maxBody = 1 << 20

type lockText struct {
	Key    string        `json:"key"`
	Token  mortise.Token `json:"token"`
	Lost   string        `json:"lost,omitempty"`
	Wanted bool          `json:"wanted,omitempty"`
	Doubt  bool          `json:"in_doubt,omitempty"` // neither held nor lost: see mortise.ErrInJeopardy
}

type asked struct {
	Lease     string        `json:"lease"`
	Name      string        `json:"name"`
	TTL       *float64      `json:"ttl_seconds"`
	Request   string        `json:"request"` // an ID for a request: see requests.go
	Count     int           `json:"count"`   // of IDs
	Quiet     bool          `json:"quiet"`
	Key       string        `json:"key"`
	Token     mortise.Token `json:"token"`
	Wait      *float64      `json:"wait_seconds"` // nil means no limit; 0 means not to wait
	Value     string        `json:"value"`
	MaxHold   *float64      `json:"max_hold_seconds"`
	MaxIdle   *float64      `json:"max_idle_seconds"`
	LockDelay *float64      `json:"lock_delay_seconds"`
	Grace     *float64      `json:"jeopardy_grace_seconds"`

	Mode       mortise.Mode      `json:"mode"`
	Tree       bool              `json:"tree"`
	Also       []mortise.Part    `json:"also"`
	Labels     map[string]string `json:"labels"`
	MaxWaiting int               `json:"max_waiting"`
	Notice     bool              `json:"notice"`
	Sticky     bool              `json:"sticky"`
	Resume     mortise.Token     `json:"resume"`

	Data     []byte `json:"data"` // base64
	Revision uint64 `json:"revision,string"`
}

// wish is a request for a lock. If resume or sticky is set, it is for Node.Resume or
// Node.LockSticky.
type wish struct {
	mortise.Request
	resume mortise.Token
	sticky bool
}

func (w *wish) resumed() mortise.ResumeOptions {
	return mortise.ResumeOptions{MaxHold: w.MaxHold, MaxIdle: w.MaxIdle, JeopardyGrace: w.JeopardyGrace,
		LockDelay: w.LockDelay, Notice: w.Notice, Value: w.Value, Labels: w.Labels}
}

func (w *wish) stuck() mortise.StickyOptions {
	return mortise.StickyOptions{Shared: w.Mode == mortise.Shared, Try: w.Try, Notice: w.Notice}
}

// wish returns the lock that a client asks for, without its durations.
func (a *asked) wish() (w wish, err error) {
	w = wish{resume: a.Resume, sticky: a.Sticky, Request: mortise.Request{Key: a.Key, Mode: a.Mode, Tree: a.Tree,
		Also: a.Also, Value: a.Value, Labels: a.Labels, MaxWaiting: a.MaxWaiting, Notice: a.Notice}}
	several := w.Tree || len(w.Also) > 0
	terms := w.MaxWaiting != 0 || a.MaxHold != nil || a.MaxIdle != nil || a.Grace != nil || a.LockDelay != nil
	switch {
	case a.Sticky && (several || terms || w.Mode > mortise.Shared || a.Resume != 0 || a.Value != "" || len(a.Labels) > 0):
		return w, bad("sticky is for one key, exclusive or shared, without other terms than wait_seconds and notice")
	case a.Resume != 0 && (several || w.Mode != mortise.Exclusive || w.MaxWaiting != 0 || a.Wait != nil && *a.Wait == 0):
		return w, bad("resume keeps the keys and the mode of the hold, and does not wait for it: send it with key")
	}
	return w, nil
}

func read(w http.ResponseWriter, r *http.Request) (a asked, err error) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		return a, bad("send Content-Type: application/json")
	}
	body := http.MaxBytesReader(w, r.Body, maxBody)
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, bad("the body: %v", err)
	}
	// The server notices the end of a client only after the end of the body.
	if n, err := io.Copy(io.Discard, io.MultiReader(d.Buffered(), body)); err != nil {
		return a, bad("the body after its first object, %d bytes: %v", n, err)
	}
	return a, nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", mortise.ErrBadRequest, fmt.Sprintf(format, args...))
}

func span(name string, seconds *float64, fallback time.Duration) (time.Duration, error) {
	switch {
	case seconds == nil:
		return fallback, nil
	case *seconds < 0 || *seconds > math.MaxInt64/float64(time.Second)/2:
		return 0, bad("%s %v is not a valid number of seconds", name, *seconds)
	}
	return time.Duration(*seconds * float64(time.Second)), nil
}
