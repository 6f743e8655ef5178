package queries

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// wholeAnswer returns an answer with another value in each field. Of its flags only the one with
// this number is set.
func wholeAnswer(flag int) *replica.Answer {
	is := func(n int) bool { return n == flag }
	last := lockfsm.Token(0)
	if is(3) {
		last = 29
	}
	return &replica.Answer{
		Locks: []lockfsm.LockInfo{{Key: "k", Held: 11, Waiting: 12, Data: lockfsm.Data{Value: []byte("d"), Revision: 13},
			Queue: []lockfsm.Standing{{Session: 14, Record: []byte("r"), Number: 15, Place: 16, Token: 17, Last: last,
				Watch: 18, SinceUnixMS: 19, Grant: lockfsm.Grant{Key: "k", Permits: 20, Of: 21, Value: []byte("v")},
				Gone: is(1), Upgrades: is(2), Unsearched: is(4)}}}},
		Left:  map[lockfsm.SessionID]time.Duration{14: 22, 30: 23},
		LedBy: "from", Refusal: voters.Silent,
		Held: is(5), Next: lockfsm.Cursor{Key: "n", Place: 24}, More: is(6),
		Sessions: []lockfsm.SessionInfo{{ID: 30, Record: []byte("s"), TTL: 31, Held: 32, Waiting: 33, Leaving: is(7),
			Gone: is(8), Nonce: lockfsm.Nonce{34}}},
		From: lockfsm.SessionCursor{At: 40, Past: 41},
		Members: []replica.Listed{{Session: 42, Instance: nodeidtest.ID(43), Name: "name", Addr: "addr", Zone: "zone",
			Version: "version", Tier: "tier", For: "for", Since: 44, Votes: is(9), Leaving: is(10)}},
		Total: 45, Names: map[nodeid.ID]string{nodeidtest.ID(46): "named"},
		Data: &lockfsm.Data{Value: []byte("data"), Revision: 50}, Code: lockfsm.Changed, First: 51, Budget: 52, Leader: 53,
		Position: 54, Missed: is(11),
		Events: []lockfsm.Event{{Position: 60, What: 61, Cause: 62, Part: lockfsm.Part{Key: "e", Mode: lockfsm.ModeS,
			Tree: is(12)}, Token: 63, Last: 64, Session: 65, Record: []byte("er"), WallUnixMS: 66,
			How: &lockfsm.How{By: []byte("by"), Reason: []byte("reason"), Value: []byte("ev"),
				Data: lockfsm.Data{Value: []byte("ed"), Revision: 67}}},
			{Position: 68}},
	}
}

const flags = 13

// answers returns the messages of wholeAnswer.
func answers(flag int) (locks *query.LockList, events *query.EventList, sessions *query.SessionList,
	members *query.MemberList) {
	is := func(n int) bool { return n == flag }
	member, named := nodeidtest.ID(43), nodeidtest.ID(46)
	locks = &query.LockList{Next: &query.Cursor{Key: []byte("n"), Place: 24}, More: is(6), Leader: 53, Position: 54,
		Locks: []*query.Lock{{Key: []byte("k"), Held: 11, Waiting: 12, Data: &query.Data{Value: []byte("d"), Revision: 13},
			Queue: []*query.Standing{{Session: 14, Record: []byte("r"), Place: 16, Token: 17, Watch: 18, Since: 19,
				Part:     &query.Part{Key: []byte("k"), Mode: uint32(lockfsm.ModeX), Permits: 20, Of: 21},
				Upgrades: is(2), Value: []byte("v"), Gone: is(1), Left: 22, Kept: is(3), Unsearched: is(4)}}}}}
	part := (&lockfsm.Standing{Grant: lockfsm.Grant{Key: "k", Permits: 20, Of: 21}}).Parts()[0]
	locks.Locks[0].Queue[0].Part.Mode = uint32(part.Mode)
	events = &query.EventList{Position: 54, More: is(6), Missed: is(11), Leader: 53, Events: []*query.Event{
		{Position: 60, What: 61, Cause: 62, Part: &query.Part{Key: []byte("e"), Mode: uint32(lockfsm.ModeS), Tree: is(12)},
			Token: 63, Session: 65, Record: []byte("er"), At: 66, By: []byte("by"), Reason: []byte("reason"),
			Data: &query.Data{Value: []byte("ed"), Revision: 67}, Value: []byte("ev")},
		{Position: 68, Part: &query.Part{}}}}
	from := &query.SessionCursor{At: 40, Past: 41}
	sessions = &query.SessionList{From: from, More: is(6), Sessions: []*query.Session{{Id: 30, Record: []byte("s"),
		Ttl: 31, Left: 23, Leaving: is(7), Gone: is(8), Held: 32, Waiting: 33}}}
	members = &query.MemberList{From: from, More: is(6), Total: 45, Members: []*query.Member{{Session: 42,
		Instance: member[:], Name: "name", Addr: "addr", Zone: "zone", Version: "version", Tier: "tier", For: "for",
		Since: 44, Votes: is(9), Leaving: is(10)}}, Names: []*query.Name{{Instance: named[:], Name: "named"}}}
	return locks, events, sessions, members
}

// asking returns a question to a leader, as a function of its client.
func asking[Q, A any](method Method[query.QueryClient, Q, A], q *Q) func(context.Context, transport.Services) (any,
	error) {
	return func(ctx context.Context, s transport.Services) (any, error) {
		a, err := Ask(ctx, query.NewQueryClient(s.As(peer(capability.Root, nil))), method, q)
		if err != nil {
			return nil, err
		}
		return a, nil
	}
}

// TestEachQuestionIsCarriedWhole sends a question of each method with another value in each of its
// fields, and compares what the replica is asked, and the whole answer. A method without a row
// fails. If the replica fails, so does the question.
func TestEachQuestionIsCarriedWhole(t *testing.T) {
	key, nonce, broken := []byte("key"), lockfsm.Nonce{1, 2}, errors.New("broken")
	for flag := range flags {
		locks, events, sessions, members := answers(flag)
		put := &query.PutAnswer{Code: uint32(lockfsm.Changed), Revision: 50, Budget: 52}
		next := &query.Cursor{Key: []byte("at"), Place: 3}
		page := &query.PageRequest{From: &query.SessionCursor{At: 4, Past: 5}}
		from := lockfsm.SessionCursor{At: 4, Past: 5}
		held := &query.Held{Held: flag == 5}
		putting := &query.PutRequest{Key: key, Data: []byte("data"), Revision: 6, Nonce: nonce[:], Lock: []byte("lock"),
			Token: 7}
		isPut := replica.Question{Op: replica.OpPut, Key: "key", Value: []byte("data"), After: 6, Nonce: nonce, Lock: "lock",
			Token: 7}
		rows := map[string]struct {
			ask  func(context.Context, transport.Services) (any, error)
			want replica.Question
			is   proto.Message
		}{
			"Peek": {asking(query.QueryClient.Peek, &query.KeyRequest{Key: key}),
				replica.Question{Op: replica.OpPeek, Key: "key"}, locks},
			"List": {asking(query.QueryClient.List, &query.ListRequest{Prefix: key, Next: next}),
				replica.Question{Op: replica.OpList, Key: "key", Next: lockfsm.Cursor{Key: "at", Place: 3}}, locks},
			"Walk": {asking(query.QueryClient.Walk, &query.ListRequest{Prefix: key, Next: next}),
				replica.Question{Op: replica.OpWalk, Key: "key", Next: lockfsm.Cursor{Key: "at", Place: 3}}, locks},
			"Holders": {asking(query.QueryClient.Holders, &query.HoldersRequest{Key: key, After: 8}),
				replica.Question{Op: replica.OpHolders, Key: "key", After: 8}, locks},
			"Check": {asking(query.QueryClient.Check, &query.HoldRequest{Key: key, Token: 9}),
				replica.Question{Op: replica.OpCheck, Key: "key", Token: 9}, held},
			"Get": {asking(query.QueryClient.Get, &query.KeyRequest{Key: key}),
				replica.Question{Op: replica.OpGet, Key: "key"}, &query.Data{Value: []byte("data"), Revision: 50}},
			"Put":     {asking(query.QueryClient.Put, putting), isPut, put},
			"PutHeld": {asking(query.QueryClient.PutHeld, putting), isPut, put},
			"SetValue": {asking(query.QueryClient.SetValue, &query.ValueRequest{Key: key, Token: 10, Seq: 11,
				Value: []byte("v")}), replica.Question{Op: replica.OpValue, Key: "key", Token: 10, After: 11,
				Value: []byte("v"), Asker: nodeidtest.ID(5)}, &query.PutAnswer{Code: put.Code, Budget: put.Budget}},
			"Reserve": {asking(query.QueryClient.Reserve, &query.ReserveRequest{Count: 12}),
				replica.Question{Op: replica.OpReserve, After: 12}, &query.Reserved{Code: put.Code, First: 51}},
			"EndSession": {asking(query.QueryClient.EndSession, &query.EndSessionRequest{Session: 7, By: []byte("by"),
				Reason: []byte("why")}), replica.Question{Op: replica.OpEnd, Session: 7, By: "by", Reason: "why"}, held},
			"TransferLead": {asking(query.QueryClient.TransferLead, &query.TransferLeadRequest{Name: []byte("n"),
				By: []byte("by"), Reason: []byte("why")}), replica.Question{Op: replica.OpLead, Key: "n", By: "by",
				Reason: "why"}, &query.TransferLeadAnswer{Refusal: uint32(voters.Silent), From: []byte("from")}},
			"Evict": {asking(query.QueryClient.Evict, &query.EvictRequest{Key: key, Token: 13, By: []byte("by"),
				Reason: []byte("why")}), replica.Question{Op: replica.OpEvict, Key: "key", Token: 13, By: "by",
				Reason: "why"}, held},
			"Watch": {asking(query.QueryClient.Watch, &query.WatchRequest{Prefixes: [][]byte{key}, After: 14,
				AtOnce: flag == 0}), replica.Question{Op: map[bool]replica.Op{true: replica.OpEvents,
				false: replica.OpWatch}[flag == 0], Prefixes: lockfsm.NewPrefixes("key"), After: 14}, events},
			"Ends": {asking(query.QueryClient.Ends, &query.StateRequest{}), replica.Question{Op: replica.OpEnds}, events},
			"Sessions": {asking(query.QueryClient.Sessions, page),
				replica.Question{Op: replica.OpSessions, From: from}, sessions},
			"Members": {asking(query.QueryClient.Members, page),
				replica.Question{Op: replica.OpMembers, From: from}, members},
			"Names": {asking(query.QueryClient.Names, &query.StateRequest{}), replica.Question{Op: replica.OpNames}, members},
		}
		for _, m := range query.Query_ServiceDesc.Methods {
			row, is := rows[m.MethodName]
			if !is {
				t.Errorf("%s has no row", m.MethodName)
				continue
			}
			var last replica.Question
			got, err := row.ask(t.Context(), leads(wholeAnswer(flag), nil, &last))
			row.want.For = fair.Identity{Instance: nodeidtest.ID(5)}
			if err != nil || !reflect.DeepEqual(last, row.want) {
				t.Errorf("%s asks for\n%+v, %v\nwant\n%+v", m.MethodName, last, err, row.want)
			}
			if a, is := got.(proto.Message); err == nil && (!is || !proto.Equal(a, row.is)) {
				t.Errorf("%s with flag %d answers\n%v\nwant\n%v", m.MethodName, flag, got, row.is)
			}
			if _, err := row.ask(t.Context(), leads(nil, broken, &last)); err == nil || err.Error() != broken.Error() {
				t.Errorf("%s: the replica fails, and the question: %v", m.MethodName, err)
			}
		}
	}
}

// TestDataThatIsNoneIsCarried checks the answers about a key without data.
func TestDataThatIsNoneIsCarried(t *testing.T) {
	var last replica.Question
	services := leads(&replica.Answer{}, nil, &last)
	for name, ask := range map[string]func(context.Context, transport.Services) (any, error){
		"Get": asking(query.QueryClient.Get, &query.KeyRequest{}),
		"Put": asking(query.QueryClient.Put, &query.PutRequest{Nonce: make([]byte, len(lockfsm.Nonce{}))}),
	} {
		a, err := ask(t.Context(), services)
		if m, is := a.(proto.Message); err != nil || !is || proto.Size(m) != 0 {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

// TestWhoseHoldAValueIsFor checks who changes the value of a hold: the program for which an
// instance asks, or else the instance.
func TestWhoseHoldAValueIsFor(t *testing.T) {
	program, short := nodeidtest.ID(9), []byte("short")
	for _, c := range []struct {
		asker []byte
		want  nodeid.ID
	}{{nil, nodeidtest.ID(5)}, {short, nodeidtest.ID(5)}, {program[:], program}} {
		var last replica.Question
		_, err := asking(query.QueryClient.SetValue, &query.ValueRequest{Origin: &query.Origin{Asker: c.asker}, Token: 1,
			Seq: 2})(t.Context(), leads(&replica.Answer{}, nil, &last))
		if err != nil || last.Asker != c.want {
			t.Errorf("a value for %q is set by %v, %v", c.asker, last.Asker, err)
		}
	}
}
