//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
)

// distinct sets every field of the struct to which v points, also of embedded structs, to a value
// that no other field has. Times are minutes before now.
func distinct(v reflect.Value, now time.Time, at *int) {
	for i := range v.NumField() {
		f := v.Field(i)
		*at++
		switch f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(now.Add(-time.Duration(*at) * time.Minute)))
			continue
		case time.Duration:
			f.SetInt(int64(time.Duration(*at) * time.Minute))
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			distinct(f, now, at)
		case reflect.String:
			f.SetString(fmt.Sprintf("%s%d", strings.ToLower(v.Type().Field(i).Name), *at))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(*at))
		case reflect.Uint64:
			f.SetUint(uint64(*at))
		}
	}
}

// shows checks that a printed form of a struct changes with each of its fields, apart from those
// named, which it does not show.
func shows[T any](t *testing.T, now time.Time, print func(T) string, hidden ...string) {
	t.Helper()
	var full T
	at := 0
	distinct(reflect.ValueOf(&full).Elem(), now, &at)
	var each func(path []int, of reflect.Type)
	each = func(path []int, of reflect.Type) {
		for i := range of.NumField() {
			field, here := of.Field(i), append(slices.Clone(path), i)
			if field.Anonymous && field.Type.Kind() == reflect.Struct {
				each(here, field.Type)
				continue
			}
			without := full
			reflect.ValueOf(&without).Elem().FieldByIndex(here).SetZero()
			if reflect.DeepEqual(without, full) {
				continue // a slice or a map, which has a row of its own
			}
			if changes := print(without) != print(full); changes == slices.Contains(hidden, field.Name) {
				t.Errorf("%T: %q, and %q without %s", full, print(full), print(without), field.Name)
			}
		}
	}
	each(nil, reflect.TypeFor[T]())
}

// TestEachColumnShowsItsField compares whole rows of structs whose fields all differ, and checks
// that a row changes with each field that it shows.
func TestEachColumnShowsItsField(t *testing.T) {
	now := time.Now()
	joined := func(row []string) string { return strings.Join(row, "|") }
	member := func(m mortise.Member) string { return joined(memberRow(m, "i", now)) }
	session := func(s mortise.SessionInfo) string { return joined(sessionRow(s, now)) }
	standing := func(s mortise.Standing) string { return joined(standingRow(6, s, now)) }
	since := now.Add(-90 * time.Second)
	m := mortise.Member{Name: "n", Instance: "i", Address: "a", Zone: "z", Version: "v", Tier: "t", For: "f",
		Session: "s", Since: since, Votes: true}
	info := mortise.SessionInfo{Member: mortise.Member{Name: "n", Session: "s", Since: since, Instance: "i"},
		TTL: 9 * time.Second, Left: 7 * time.Second, Held: 3, Waiting: 4}
	s := mortise.Standing{Part: mortise.Part{Key: "k", Mode: mortise.Shared}, Left: 8 * time.Second, WaitsFor: 2,
		Hold: mortise.Hold{Holder: "h", Session: "s", Token: 5, Since: since, Value: "v"}}
	for _, row := range []struct {
		what, got, want string
	}{
		{"a leader", member(m), "n (for f)|a|i|z|v|t|leads|1m30s|s"},
		{"a voter", member(with(m, func(m *mortise.Member) { m.Instance = "o" })), "n (for f)|a|o|z|v|t|votes|1m30s|s"},
		{"leaves", member(with(m, func(m *mortise.Member) { m.Leaving = true })), "n (for f)|a|i|z|v|t|leaves|1m30s|s"},
		{"a member", member(with(m, func(m *mortise.Member) { m.Votes = false; m.For = "" })),
			"n|a|i|z|v|t||1m30s|s"},
		{"since the future", member(with(m, func(m *mortise.Member) { m.Since = now.Add(time.Hour) })),
			"n (for f)|a|i|z|v|t|leads|0s|s"},
		{"since unknown", member(with(m, func(m *mortise.Member) { m.Since = time.Time{} })),
			"n (for f)|a|i|z|v|t|leads||s"},

		{"a session", session(info), "n|s|1m30s|9s|2s|3|4|"},
		{"expired", session(with(info, func(s *mortise.SessionInfo) { s.Expired = true })),
			"n|s|1m30s|9s||3|4|expired, in a lock delay"},
		{"leaving", session(with(info, func(s *mortise.SessionInfo) { s.Leaving = true })), "n|s|1m30s|9s|2s|3|4|leaves"},
		{"silence unknown", session(with(info, func(s *mortise.SessionInfo) { s.Left = 0 })), "n|s|1m30s|9s||3|4|"},
		{"heard now", session(with(info, func(s *mortise.SessionInfo) { s.Left = 10 * time.Second })),
			"n|s|1m30s|9s|0s|3|4|"},
		{"of an unknown age", session(with(info, func(s *mortise.SessionInfo) { s.Since = time.Time{} })),
			"n|s||9s|2s|3|4|"},
		{"of the future", session(with(info, func(s *mortise.SessionInfo) { s.Since = now.Add(time.Hour) })),
			"n|s|0s|9s|2s|3|4|"},

		{"a holder", standing(s), "6|h|s|holds|5|1m30s|8s|shared|v"},
		{"a lock delay", standing(with(s, func(s *mortise.Standing) { s.Expired = true })),
			"6|h|s|expired, in its lock delay|5|1m30s|8s|shared|v"},
		{"a waiter", standing(with(s, func(s *mortise.Standing) { s.Token, s.Since = 0, time.Time{} })),
			"6|h|s|waits for 2|||8s|shared|v"},
		{"behind the first", standing(with(s, func(s *mortise.Standing) { s.Token, s.WaitsFor = 0, 0 })),
			"6|h|s|waits for 0||1m30s|8s|shared|v"},
		{"a waiter elsewhere", standing(with(s, func(s *mortise.Standing) { s.Token, s.WaitsFor = 0, -1 })),
			"6|h|s|waits||1m30s|8s|shared|v"},
		{"a lease unknown", standing(with(s, func(s *mortise.Standing) { s.Left = 0 })), "6|h|s|holds|5|1m30s||shared|v"},

		{"a key", joined(keyRow(mortise.KeyInfo{Key: "k", Held: 1, Waiting: 7, Queue: []mortise.Standing{s}}, now)),
			"k|h|5|1m30s|7|v"},
		{"a shared key", joined(keyRow(mortise.KeyInfo{Key: "k", Held: 3, Queue: []mortise.Standing{s, s}}, now)),
			"k|h and 2 more|5|1m30s|0|v"},
		{"a key that nothing holds", joined(keyRow(mortise.KeyInfo{Key: "k", Waiting: 2,
			Queue: []mortise.Standing{s, s}}, now)), "k||||2|"},

		{"leads", part(&mortise.Status{Leading: true, Joined: true, Member: m}), "leads"},
		{"votes", part(&mortise.Status{Joined: true, Member: m}), "votes"},
		{"joins", part(&mortise.Status{}), "joins"},
		{"a plain member", part(&mortise.Status{Joined: true}), "member"},
	} {
		if row.got != row.want {
			t.Errorf("%s: %s, want %s", row.what, row.got, row.want)
		}
	}
	shows(t, now, func(m mortise.Member) string { m.Leaving = false; return member(m) }, "Leaving", "Seen")
	shows(t, now, func(s mortise.SessionInfo) string { s.Expired = false; return session(s) },
		"Instance", "Address", "Zone", "Votes", "Version", "Tier", "For", "Seen", "Own", "Expired")
	shows(t, now, func(s mortise.Standing) string { s.Expired = false; return standing(s) },
		"Expired", "WaitsFor")
	shows(t, now, func(e mortise.Event) string { e.Kind = mortise.EventHeld; return eventLine(e) },
		"Position", "Kind", "Session", "Since", "Value", "Kept", "Revision")
}

func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

// printed are the commands that print a state, with what they print. Numbers of tokens, revisions,
// sessions and instances are masked, as are times and addresses.
func printed() []struct{ line, want string } {
	const keys = "KEY HOLDER TOKEN HELD-FOR WAITING VALUE\n"
	const changes = "KEY HOLDER TOKEN HELD-FOR WAITING CHANGES VALUE\n"
	const queue = "PLACE HOLDER SESSION STATE TOKEN HELD-FOR LEASE-LEFT MODE VALUE\n"
	return []struct{ line, want string }{
		{"ls", keys + "d - - - 0 -\nb n # # 0 -\na/1 n # # 1 v\na/2 n and 1 more # # 0 w\n" +
			"and 1 that package tick holds for itself; -o json has them\n"},
		{"ls a/", keys + "a/1 n # # 1 v\na/2 n and 1 more # # 0 w\n"},
		{"ls none/", keys},
		{"get none", "none is free, and no request waits for it\n"},
		{"get d", "data \"one\" at revision #\nd is free, and no request waits for it\n"},
		{"get b", "data \"two\" at revision #\n" + queue + "0 n # holds # # # exclusive -\n"},
		{"get a/1", queue + "0 n # holds # # # exclusive v\n1 n # waits for 0 - - # exclusive x\n" +
			"\nIf n does not release it: stop it, then run mortise unlock --force a/1 --token # --reason \"...\"\n"},
		{"top -count 1", "# 4 keys, 4 holds, 1 waiting; by waiting\n" + changes +
			"a/1 n # # 1 0 v\na/2 n and 1 more # # 0 0 w\nb n # # 0 0 -\nd - - - 0 0 -\n\n"},
		{"top -count 1 -n 1 -by held a/", "# 2 keys of a/, 3 holds, 1 waiting; by held\n" + changes +
			"a/1 n # # 1 0 v\n\n"},
		{"data get d", "one"},
		{"data get none", "mortise data: none has no data\n"},
		{"unlock --force a/9 --token 7 --reason r", "a/9: it is no longer held with token 7; nothing was ended\n"},
		{"unlock --force none/ --all --reason r", "no key that begins with \"none/\" is held; nothing was ended\n"},
		{"members", "NAME ADDRESS INSTANCE ZONE VERSION TIER PART SINCE SESSION\nn AT # - # root leads # #\n"},
		{"status", "leader n, 1 voters wanted of 1 eligible instances\nthis group cannot survive the loss of n\n" +
			"voters: 1 of 1 eligible instances vote, the largest odd number up to Voters, 1\n" +
			"next safe step: start a second and a third instance: while there is one, its loss ends the group and all " +
			"locks\n\nNAME ADDRESS PART GROUP LEADER TERM LEASE LEFT HOLDS WAITS\nn AT leads # n 2 safe # 5 1\n"},
		{"sessions", "HOLDER SESSION SINCE TTL SILENT HOLDS WAITS STATE\nn # # # # 5 1 -\n"},
		{"audit", "# freed a/3 n token # forced by n: because\n"},
		{"doctor b", "well: n leads group #\nnext safe step:\n 1. start a second and a third instance: while there is " +
			"one, its loss ends the group and all locks\nasked:\n AT (by AT): n, leads, leader n\nwaited for:\n" +
			" b: n holds it for # (token #, session #, \"\"), 0 wait\n n answers and renews its lease: its process is " +
			"alive, and its code has not unlocked\n"},
	}
}

// TestWhatEachCommandPrints runs the commands that print a state, on one node with held, shared and
// awaited keys, and compares all that they print.
func TestWhatEachCommandPrints(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{Name: "n", Bind: "127.0.0.1:0", Grace: -1, Voters: 1,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, data := range [][2]string{{"d", "one"}, {"b", "two"}} {
		if _, err := node.Put(ctx, data[0], []byte(data[1]), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []mortise.Request{
		{Key: "a/1", Value: "v"}, {Key: "a/2", Mode: mortise.Shared, Value: "w"}, {Key: "a/2", Mode: mortise.Shared},
		{Key: "b"}, {Key: "a/3"}, {Key: "t", Labels: shown.Purpose(shown.Tick)},
	} {
		lock, err := node.Acquire(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.UnlockSoon()
		if r.Key == "a/3" {
			if _, err := node.ForceUnlock(ctx, r.Key, lock.Token(), "because"); err != nil {
				t.Fatal(err)
			}
		}
	}
	waiting, give := context.WithCancel(ctx)
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		_, _ = node.Acquire(waiting, mortise.Request{Key: "a/1", Value: "x"})
	}()
	defer func() { give(); <-waits }()
	for info, err := node.Peek(ctx, "a/1"); info.Waiting == 0; info, err = node.Peek(ctx, "a/1") {
		if err != nil {
			t.Fatal(err)
		}
	}
	at := node.Status().Address
	mask := regexp.MustCompile(`\b(\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ|[0-9a-f]{16,32}|v\d+\.\d+\.\d+|` +
		`\d{4,}|[\d.]+(µs|ms|s|m\d+s))\b`)
	for _, row := range printed() {
		t.Setenv("MORTISE_JOIN", at)
		var out bytes.Buffer
		Main(ctx, strings.Fields(row.line), &out, &out)
		text := mask.ReplaceAllString(strings.ReplaceAll(out.String(), at, "AT"), "#")
		text = regexp.MustCompile(` +`).ReplaceAllString(text, " ")
		if text = strings.ReplaceAll(text, " \n", "\n"); text != row.want {
			t.Errorf("mortise %s prints\n%s\nwant\n%s", row.line, text, row.want)
		}
	}
}
