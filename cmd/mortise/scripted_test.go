//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// scripted is an instance that answers the questions of commands by a script, and writes them down.
type scripted struct {
	query.UnimplementedAdminServer
	t      *testing.T
	at     string
	change func(*mortise.Status, *query.HereAnswer)
	left   int // how many times it is still of its group after a recovery

	mu   sync.Mutex // guards the fields below
	said []string
}

const scriptedGroup = "0123456789abcdef"

// deaf receives nothing: the instance only answers questions.
type deaf struct{}

func (deaf) Frame(transport.Identity, transport.Frame)                 {}
func (deaf) Down(transport.Identity, error)                            {}
func (deaf) MaySendSnapshot(transport.Identity, *raftpb.Message) error { return errors.New("deaf") }
func (deaf) Snapshot(transport.Identity, *raftpb.Message) error        { return errors.New("deaf") }
func (s *scripted) text(v any) []byte                                  { b, _ := json.Marshal(v); return b }
func (s *scripted) dial(context.Context, string) (net.Conn, error)     { return nil, errors.New("deaf") }
func (s *scripted) Health(context.Context, *query.StateRequest) (*query.HealthAnswer, error) {
	return &query.HealthAnswer{Health: s.text(mortise.Health{Leader: "n", Eligible: 3, Target: 1, Advice: "do nothing"})},
		nil
}

// intercept writes down a question.
func (s *scripted) intercept(ctx context.Context, q any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any,
	error) {
	s.mu.Lock()
	s.said = append(s.said, info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]+" "+string(s.text(q)))
	s.mu.Unlock()
	return next(ctx, q)
}

func newScripted(t *testing.T) *scripted {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{t: t, at: l.Addr().String()}
	key := nodeid.NewKey(func(b []byte) { _, _ = rand.Read(b) })
	port, err := transport.New(transport.Config{Cluster: "mortise", Self: transport.Self{Key: key}, Listener: l,
		Dial: s.dial, Handler: deaf{}, Rules: lockfsm.Fingerprints(), Services: transport.Services{
			List: []transport.Service{{Desc: &query.Admin_ServiceDesc, Impl: s}}, Intercept: s.intercept}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { port.Close() })
	return s
}

func (s *scripted) Here(context.Context, *query.HereRequest) (*query.HereAnswer, error) {
	me := mortise.Member{Name: "n", Instance: "i", Address: s.at, Zone: "z", Version: "v", Votes: true}
	st := &mortise.Status{Member: me, Cluster: "c", Group: scriptedGroup, Joined: true, Leader: "the leader",
		Leading: true, Attached: true, Voters: []mortise.Member{me}, Lease: mortise.LeaseSafe, LeaseFor: 8 * time.Second,
		Term: 5, Held: 3, Waiters: 4, Sessions: []string{"7"}, Idle: []mortise.IdleHold{
			{Key: "hangs", Token: 9, MaxIdle: 10 * time.Second, Idle: 6 * time.Second},
			{Key: "moves", Token: 8, MaxIdle: time.Minute}}}
	a := &query.HereAnswer{Durable: true, Replicas: 1, WallUnixMs: time.Now().UnixMilli()}
	s.change(st, a)
	s.mu.Lock()
	for _, asked := range s.said {
		if strings.HasPrefix(asked, "Recover") {
			if s.left--; s.left < 0 {
				st.Group = "another"
			}
			break
		}
	}
	s.mu.Unlock()
	a.Status = s.text(st)
	return a, nil
}

func (s *scripted) key(name string) mortise.KeyInfo {
	standing := func(holder string, session string, token mortise.Token) mortise.Standing {
		return mortise.Standing{Part: mortise.Part{Key: name}, Left: 6 * time.Second, WaitsFor: -1, Hold: mortise.Hold{
			Holder: holder, Session: session, Token: token, Value: "v of " + holder, Since: time.Now().Add(-100 * time.Second)}}
	}
	switch name {
	case "free":
		return mortise.KeyInfo{Key: name}
	case "data":
		return mortise.KeyInfo{Key: name, Data: []byte("some data"), Revision: 12}
	case "hot":
		return mortise.KeyInfo{Key: name, Held: 2, Waiting: 3, Queue: []mortise.Standing{standing("h", "7", 41),
			standing("h", "8", 42), standing("w", "9", 0)}}
	case "waits":
		return mortise.KeyInfo{Key: name, Waiting: 1, Queue: []mortise.Standing{standing("w", "9", 0)}}
	}
	return mortise.KeyInfo{Key: name, Held: 1, Queue: []mortise.Standing{standing("h", "7", 43)}}
}

func (s *scripted) List(_ context.Context, q *query.ListRequest) (*query.KeysAnswer, error) {
	if q.Next == nil {
		return &query.KeysAnswer{Keys: s.text([]mortise.KeyInfo{s.key("hot"), s.key("held")}), More: true,
			Next: &query.Cursor{Key: []byte("held")}}, nil
	}
	return &query.KeysAnswer{Keys: s.text([]mortise.KeyInfo{s.key("waits"), s.key("data")})}, nil
}

func (s *scripted) Peek(_ context.Context, q *query.KeyRequest) (*query.KeysAnswer, error) {
	if string(q.Key) == "none" {
		return &query.KeysAnswer{Keys: s.text([]mortise.KeyInfo{})}, nil
	}
	return &query.KeysAnswer{Keys: s.text([]mortise.KeyInfo{s.key(string(q.Key))})}, nil
}

func (s *scripted) Members(_ context.Context, q *query.PageRequest) (*query.MembersAnswer, error) {
	member := func(i int) mortise.Member {
		return mortise.Member{Name: fmt.Sprint("m", i), Instance: []string{"i", "j", "k"}[i], Session: fmt.Sprint(i + 7),
			Address: s.at, Votes: i < 2}
	}
	if q.From == nil {
		return &query.MembersAnswer{Members: s.text([]mortise.Member{member(0), member(1)}), More: true, Total: 3,
			From: &query.SessionCursor{At: 8, Past: 8}}, nil
	}
	return &query.MembersAnswer{Members: s.text([]mortise.Member{member(2)}), Total: 3}, nil
}

func (s *scripted) Sessions(_ context.Context, q *query.PageRequest) (*query.SessionsAnswer, error) {
	session := func(i int) mortise.SessionInfo {
		return mortise.SessionInfo{Member: mortise.Member{Name: fmt.Sprint("m", i), Session: fmt.Sprint(i + 7)},
			TTL: 10 * time.Second, Left: 4 * time.Second, Held: i, Waiting: 2 * i}
	}
	if q.From == nil {
		return &query.SessionsAnswer{Sessions: s.text([]mortise.SessionInfo{session(0), session(1)}), More: true,
			From: &query.SessionCursor{At: 8, Past: 8}}, nil
	}
	return &query.SessionsAnswer{Sessions: s.text([]mortise.SessionInfo{session(2)})}, nil
}

func (s *scripted) Audit(context.Context, *query.StateRequest) (*query.EventsAnswer, error) {
	return &query.EventsAnswer{Events: s.text([]mortise.Event{{Kind: mortise.EventFreed, Part: mortise.Part{Key: "one"}},
		{Kind: mortise.EventLeft, Part: mortise.Part{Key: "two"}}})}, nil
}

func (s *scripted) Watch(_ context.Context, q *query.WatchRequest) (*query.EventsAnswer, error) {
	event := func(key string) []byte {
		return s.text([]mortise.Event{{Position: q.After + 1, Kind: mortise.EventHeld, Part: mortise.Part{Key: key}}})
	}
	switch q.After {
	case 3:
		return &query.EventsAnswer{Events: event("first"), Position: 5}, nil
	case 5:
		return &query.EventsAnswer{Events: event("second"), Position: 9, Missed: true}, nil
	}
	return &query.EventsAnswer{Events: event("the last"), Position: 77}, nil
}

func (s *scripted) Evict(_ context.Context, q *query.EvictRequest) (*query.Held, error) {
	return &query.Held{Held: q.Token != 42}, nil
}

func (s *scripted) Put(_ context.Context, q *query.PutRequest) (*query.PutAnswer, error) {
	if len(q.Data) == 0 {
		return &query.PutAnswer{}, nil
	}
	return &query.PutAnswer{Revision: q.Revision + 100}, nil
}

func (s *scripted) EndSession(_ context.Context, q *query.EndSessionRequest) (*query.Held, error) {
	return &query.Held{Held: q.Session != 42}, nil
}

func (s *scripted) TransferLead(context.Context, *query.TransferLeadRequest) (*query.TransferLeadAnswer, error) {
	return &query.TransferLeadAnswer{From: []byte("a")}, nil
}

func (s *scripted) Recover(context.Context, *query.RecoverRequest) (*query.RecoverAnswer, error) {
	return &query.RecoverAnswer{}, nil
}

// TestCommandsAreAsRecorded runs each command that asks a cluster, and compares what it asks, what
// it prints and its exit code.
func TestCommandsAreAsRecorded(t *testing.T) {
	well := func(*mortise.Status, *query.HereAnswer) {}
	leaderless := func(st *mortise.Status, _ *query.HereAnswer) { st.Leader, st.Leading, st.Waiting = "", false, "waits" }
	memory := func(st *mortise.Status, a *query.HereAnswer) { leaderless(st, a); a.Durable = false }
	broken := func(_ *mortise.Status, a *query.HereAnswer) { a.Failed = "it is broken" }
	joins := func(st *mortise.Status, a *query.HereAnswer) {
		leaderless(st, a)
		st.Joined, st.Group, st.Voters = false, "", nil
	}
	mask := regexp.MustCompile(`\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z|[\d.]+(µs|ms|s|m\d+s))\b|` +
		`"(nonce|by|reason)":"[^"]*"|_seconds":[\d.e+-]+|"(since|at)":"[^"]*"`)
	var text bytes.Buffer
	for _, row := range []struct {
		lines  string
		change func(*mortise.Status, *query.HereAnswer)
	}{
		{`ls
ls p
ls -o json
get hot
get free
get none
get data
get -o json hot
top -count 2 -every 100ms
top -n 1 -count 1 -by held p
top -count 1 -o json
audit
audit -o json
watch -after 3
watch -after 3 -o json
data get data
data get free
data get -o json data
data put data x
data put -o json data x
data put -revision 7 data x
data rm data
unlock --force hot --token 41 --reason r
unlock --force hot --token 42 --reason r
lead b --reason r
lead a --reason r
lead -o json b --reason r
session end 41 --reason r
session end 42 --reason r
session end -o json 41 --reason r
session end x --reason r
unlock --force -o json hot --token 41 --reason r
unlock --force h --all --reason r
members
members -n 1
members -n 2
members -n 3
members -n 0
members -after 8 -o json
sessions
sessions -n 1
sessions -n 2
sessions -n 3
sessions -after 8
sessions -o json
status
status -o json
doctor
doctor hot
doctor free
doctor -o json
recover 0123456789abcdef
recover fedcba9876543210`, well},
		{"status\nmembers\nmembers -o json\nrecover " + scriptedGroup + "\nrecover fedcba9876543210", leaderless},
		{"recover " + scriptedGroup, memory}, {"status\ndoctor", broken}, {"status\nmembers", joins},
	} {
		for line := range strings.SplitSeq(row.lines, "\n") {
			s := newScripted(t)
			s.change, s.left = row.change, 2
			t.Setenv("MORTISE_JOIN", s.at)
			t.Setenv("MORTISE_INSECURE", "true")
			ctx, stop := context.WithTimeout(t.Context(), patience)
			out := told{of: "the last", stop: stop}
			if !strings.HasPrefix(line, "watch") {
				out.stop = nil
			}
			code := Main(ctx, append(strings.Fields(line), "-timeout", "30s"), &out, &out)
			stop()
			s.mu.Lock()
			fmt.Fprintf(&text, "%s: %d\n", line, code)
			asked := slices.Compact(s.said) // a busy machine asks again
			for _, said := range append(asked, strings.Split(strings.TrimSpace(out.text.String()), "\n")...) {
				said = mask.ReplaceAllString(strings.ReplaceAll(said, s.at, "AT"), "#")
				fmt.Fprintf(&text, "  %s\n", strings.Join(strings.Fields(said), " "))
			}
			s.mu.Unlock()
		}
	}
	sameAs(t, "testdata/commands.txt", text.Bytes())
}
