package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

var update = flag.Bool("update", false, "write testdata/views.json anew")

// fullScene returns the scene of a leader with something of everything: all kinds of requests,
// sessions, members and ends, a missing voter and more of each than the page shows.
func fullScene() *scene {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	hold := func(holder, session string, token mortise.Token, since time.Duration) mortise.Hold {
		h := mortise.Hold{Holder: holder, Session: session, Token: token, Value: "value of " + holder}
		if token != 0 {
			h.Since = ago(since)
		}
		return h
	}
	kept := func(h mortise.Hold) mortise.Hold { h.Kept = true; return h }
	keys := []mortise.KeyInfo{
		{Key: "a", Held: 1, Waiting: 6, Data: []byte("data"), Revision: 77, Queue: []mortise.Standing{
			{Part: mortise.Part{Key: "a"}, Hold: hold("s2", "2", 11, time.Minute), Left: 4 * time.Second, WaitsFor: -1},
			{Part: mortise.Part{Key: "a"}, Hold: hold("s3", "3", 0, 0), Left: 5 * time.Second, Unsearched: true},
			{Part: mortise.Part{Key: "a"}, Hold: hold("s1", "1", 0, 0), Left: 6 * time.Second, WaitsFor: 1},
			{Part: mortise.Part{Key: "a"}, Hold: hold("s1", "1", 0, 0), Left: 6 * time.Second, WaitsFor: 2},
		}},
		{Key: "b", Held: 2, Waiting: 1, Queue: []mortise.Standing{
			{Part: mortise.Part{Key: "b", Mode: mortise.Shared}, Hold: hold("s3", "3", 21, 40*time.Second),
				Also: []mortise.Part{{Key: "b2", Tree: true}, {Key: "", Mode: mortise.Shared}}},
			{Part: mortise.Part{Key: "b", Mode: mortise.Shared}, Hold: hold("s1", "1", 22, 50*time.Second)},
			{Part: mortise.Part{Key: "b", Tree: true}, Hold: hold("s2", "2", 0, 0)},
		}},
		{Key: "c", Held: 1, Queue: []mortise.Standing{
			{Part: mortise.Part{Key: "c"}, Hold: hold("s2", "1", 31, time.Hour), Expired: true, Left: 2 * time.Second}}},
		{Key: "d", Held: 1, Waiting: 1, Queue: []mortise.Standing{
			{Part: mortise.Part{Key: "d"}, Hold: kept(hold("s4", "9", 41, 2*time.Minute))},
			{Part: mortise.Part{Key: "d"}, Hold: hold("s1", "1", 0, 0)}}},
	}
	for i := range 8 {
		keys = append(keys, mortise.KeyInfo{Key: fmt.Sprint("e", i), Held: 1, Queue: []mortise.Standing{
			{Part: mortise.Part{Key: fmt.Sprint("e", i)}, Hold: hold("s1", "1", mortise.Token(100+i),
				time.Duration(i)*time.Second)}}})
	}
	var sessions []mortise.SessionInfo
	for i := range 14 {
		sessions = append(sessions, mortise.SessionInfo{Member: mortise.Member{Session: fmt.Sprint(i + 1),
			Name: fmt.Sprint("s", i%4+1), Since: ago(time.Duration(100-i) * time.Second), Leaving: i == 4},
			TTL: 10 * time.Second, Left: time.Duration(9000-500*i) * time.Millisecond, Expired: i == 5,
			Held: i, Waiting: i + 1})
		if i < 4 { // the others are of programs
			sessions[i].Instance = fmt.Sprint("instance", i+1)
		}
	}
	member := func(i int, votes bool) mortise.Member {
		return mortise.Member{Name: fmt.Sprint("s", i), Instance: fmt.Sprint("instance", i), Zone: fmt.Sprint("z", i%2),
			Address: fmt.Sprintf("s%d:7947", i), Votes: votes, Seen: i != 3, Version: "v0.1.0", Tier: mortise.TierRoot,
			Session: fmt.Sprint(i), Since: ago(time.Hour), Leaving: i == 4}
	}
	voters := []mortise.Member{member(1, true), member(2, true), member(3, true), member(4, false)}
	members := append(slices.Clone(voters), member(5, false))
	var ends []mortise.Event
	for i := range 14 {
		ends = append(ends, mortise.Event{Position: uint64(1000 + i), Kind: mortise.EventFreed,
			At:   ago(time.Duration(i) * time.Hour),
			Part: mortise.Part{Key: fmt.Sprint("was", i)}, Hold: mortise.Hold{Holder: "s4", Token: mortise.Token(i)},
			Cause: mortise.OutcomeForced, By: "s1", Reason: fmt.Sprint("reason ", i)})
	}
	return &scene{now: now, long: 30 * time.Second, program: "example.com/p v1",
		status: mortise.Status{Member: voters[0], Cluster: "orders", Group: "g", Joined: true, Leader: "s1", Leading: true,
			Term: 5, Voters: voters, VotersWanted: 3, Attached: true, Lease: mortise.LeaseSafe, LeaseFor: 8 * time.Second,
			Held: 9, Waiters: 4, Waiting: "waits", Age: 26 * time.Hour},
		all: &answer{seen: now, tried: now, keys: keys, more: true, ends: ends, sessions: sessions,
			members: members, total: 7,
			health: &mortise.Health{Leader: "s1", Eligible: 4, Target: 3, Members: 7, CannotLose: []string{"s2"}, Due: true,
				Missing: []mortise.MissingVoter{{Member: voters[2], Silent: 7 * time.Second}}, Change: "s4 becomes a voter",
				Differs: []string{"Zone is not equal"}, Surplus: 1, Advice: "stop no instance now"}}}
}

func encoded(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pictures returns the drawings of queues that have something of everything that is drawn.
func pictures(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	now, drawings := time.Unix(1_800_000_000, 0), map[string]json.RawMessage{}
	long := strings.Repeat("long", 20)
	for _, keys := range []string{"a: x| y; b: y| z", "a: x| y; b: y| z; c: z| x w", "a: x v u| y y", "a: | y; b: y|",
		"a: x| p q r s t u", "a: x| ~p w ~q", "a: x| y; b: v| y; c: y| z", long + ": x| " + long,
		"a: x| w y; b: y| p q r s t u ~v", "a: x| y z y; b: y| q", "a: x z| y w; b: y| x; c: w| z",
		"a: x| y; " + long[:40] + ": y| z; c: z| q", "a: x| y; b: y" + long + "| z; c: z| q"} {
		s := scene{now: now, long: time.Minute, all: &answer{}}
		for _, k := range strings.Split(keys, "; ") {
			info := queue(k, now)
			for i := range info.Queue {
				st := &info.Queue[i]
				st.Value, st.Kept = "value of "+st.Holder, st.Holder == "z" && st.Token != 0
			}
			s.all.keys = append(s.all.keys, info)
		}
		var all []drawing
		forest, _ := s.waits()
		for _, one := range forest {
			all = append(all, draw(one))
		}
		drawings[keys] = encoded(t, all)
	}
	return drawings
}

// charts returns the figures of an hour in which each kind of event has another number.
func charts(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	began, all := time.Unix(1_800_000_000, 0), map[string]json.RawMessage{}
	for _, minutes := range []int{0, 1, 90} {
		var h hour
		h.begin(began)
		for i := range minutes * 60 {
			at := began.Add(time.Duration(i) * time.Second)
			s := h.at(at)
			s.grants, s.waits, s.losses = s.grants+uint32(3+i/600), s.waits+2, s.losses+uint32(i%7/6)
			s.wait.add(time.Duration(1+i%5) * time.Millisecond)
			s.hold.add(time.Duration(1+i%3) * time.Second)
			if i%3 == 0 && i < minutes*50 {
				h.leased(at, 8*time.Second)
			}
		}
		p := pastOf(&h, began.Add(time.Duration(minutes)*time.Minute))
		all[fmt.Sprint("after minutes: ", minutes)] = encoded(t, map[string]any{"figures": p, "charts": p.Charts()})
	}
	return all
}

// TestViewsAreAsRecorded compares the whole data of the page and its pictures with
// testdata/views.json, for a scene with something of everything, as it is and as each kind of
// viewer sees it. For each other scene the file has the fields that differ from the first. After a
// change of the view, write the file anew (go test ./console -run Views -update) and read its diff.
func TestViewsAreAsRecorded(t *testing.T) {
	scenes := map[string]func(*scene){
		"a leader":              func(*scene) {},
		"a node that has ended": func(s *scene) { s.status.Err = errors.New("an error") },
		"a key":                 func(s *scene) { s.one = &answer{keys: s.all.keys[:1]} },
		"a key that no leader answers": func(s *scene) {
			s.one = &answer{err: errors.New("no answer")}
		},
		"a search": func(s *scene) {
			s.filter = filter{prefix: "b"}
			s.found = &answer{seen: s.now, keys: s.all.keys[1:2]}
		},
		"a search by age and holder": func(s *scene) {
			s.filter = filter{holder: "s2", age: 30 * time.Second}
			s.found = s.all
		},
		"behind a session": func(s *scene) {
			s.after, s.others = "4", &answer{members: s.all.members[4:], total: 7}
		},
		"without a leader": func(s *scene) {
			s.status.Leader, s.status.Leading, s.status.Attached, s.status.Lease = "", false, false, mortise.LeaseLost
			s.status.Waiting = "group g has no leader"
			s.all = s.all.old(errors.New("no leader"))
			s.now = s.now.Add(time.Minute)
		},
		"a member that has seen nothing": func(s *scene) {
			s.status = mortise.Status{Member: mortise.Member{Name: "s9"}, Lease: mortise.LeaseLost, Waiting: "looks around"}
			s.all = (*answer)(nil).old(errors.New("no leader"))
		},
	}
	maps.Copy(scenes, furtherScenes())
	got := map[string]map[string]json.RawMessage{}
	for name, change := range scenes {
		s := fullScene()
		change(s)
		v := s.view()
		text := encoded(t, v)
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		fields["once"] = encoded(t, v.Once)
		got[name] = fields
	}
	got["pictures"], got["the last hour"], got["ends"] = pictures(t), charts(t), endings(t)
	got["the last minute"] = turning(t)
	for name, fields := range got {
		for field, text := range got["a leader"] {
			_, brief := furtherScenes()[name]
			switch {
			case name == "a leader" || len(fields[field]) == 0:
			case bytes.Equal(fields[field], text) || brief && !slices.Contains(decisive(), field):
				delete(fields, field)
			case brief:
				fields[field] = encoded(t, string(fields[field])) // in one line
			}
		}
	}
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/views.json"
	if *update {
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(want), text) {
		a, b := bytes.Split(bytes.TrimSpace(want), []byte("\n")), bytes.Split(text, []byte("\n"))
		for i := range min(len(a), len(b)) {
			if !bytes.Equal(a[i], b[i]) {
				t.Fatalf("line %d of %s is %s, and now %s", i+1, file, a[i], b[i])
			}
		}
		t.Fatalf("%s has %d lines, and now %d", file, len(a), len(b))
	}
}
