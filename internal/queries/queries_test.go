package queries

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type called struct {
	query.UnimplementedAdminServer
	query.UnimplementedClusterServer
	query.UnimplementedQueryServer
}

// rig has all services with one Guard. Functions that only count their calls replace the methods.
type rig struct {
	Guard
	services transport.Services
	calls    int
	rights   *capability.Capability
	origin   *query.Origin
}

func newRig() *rig {
	r := &rig{Guard: Guard{Started: func() bool { return true }}}
	for _, desc := range []*grpc.ServiceDesc{&query.Query_ServiceDesc, &query.Admin_ServiceDesc,
		&query.Cluster_ServiceDesc} {
		r.services.List = append(r.services.List, transport.Service{Desc: desc, Impl: called{}})
	}
	r.services.Intercept = func(ctx context.Context, q any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any,
		error) {
		return r.Intercept(ctx, q, info, func(ctx context.Context, q any) (any, error) {
			r.calls++
			r.rights, r.origin = RightsOf(ctx), nil
			if o, ok := q.(interface{ GetOrigin() *query.Origin }); ok {
				r.origin = o.GetOrigin()
			}
			return &query.HereRequest{}, nil
		})
	}
	return r
}

func peer(tier capability.Tier, c *capability.Capability) transport.Identity {
	return transport.Identity{Instance: nodeidtest.ID(5), Peer: capability.Peer{Tier: tier, Capability: c}}
}

func rights(t *testing.T, words ...string) *capability.Capability {
	t.Helper()
	c, err := capability.Build("cron-host", time.Time{}, words...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a question as a peer, and reports whether the method was called.
func (r *rig) ask(t *testing.T, from transport.Identity, method string, q proto.Message) (answered bool,
	_ *session.NotAllowedError) {
	t.Helper()
	before := r.calls
	put := func(struct{}, context.Context, *struct{}, ...grpc.CallOption) (*struct{}, error) {
		return nil, r.services.As(from).Invoke(t.Context(), method, q, &query.HereRequest{})
	}
	_, err := Ask(t.Context(), struct{}{}, put, nil)
	denied, _ := errors.AsType[*session.NotAllowedError](err)
	if answered = r.calls > before; answered == (err != nil) {
		t.Errorf("%s: called: %v, but the error is %v", method, answered, err)
	}
	return answered, denied
}

// rule describes a question about the key or prefix a/x.
type rule struct {
	q        proto.Message
	verb, on string // the right that the question needs; empty means none
	words    string // a capability that grants exactly that right
	members  bool   // members may ask the question
	guests   bool
}

func questions() map[string]rule {
	k := []byte("a/x")
	const reads, lists, any = "read a/x", "read a/x*", "read *"
	return map[string]rule{
		query.Query_Peek_FullMethodName:    {&query.KeyRequest{Key: k}, "read", "a/x", reads, true, false},
		query.Query_Get_FullMethodName:     {&query.KeyRequest{Key: k}, "read", "a/x", reads, true, false},
		query.Query_Check_FullMethodName:   {&query.HoldRequest{Key: k}, "read", "a/x", reads, true, false},
		query.Query_Holders_FullMethodName: {&query.HoldersRequest{Key: k}, "read", "a/x", reads, true, false},
		query.Query_List_FullMethodName:    {&query.ListRequest{Prefix: k}, "read", "a/x*", lists, true, false},
		query.Query_Walk_FullMethodName:    {&query.ListRequest{Prefix: k}, "read", "a/x*", lists, true, false},
		query.Query_Watch_FullMethodName:   {&query.WatchRequest{Prefixes: [][]byte{k}}, "read", "a/x*", lists, true, false},
		query.Query_Put_FullMethodName:     {&query.PutRequest{Key: k}, "write", "a/x", "write a/x", true, false},
		query.Query_SetValue_FullMethodName: {&query.ValueRequest{Key: k, Token: 1, Seq: 1}, "lock", "a/x", "lock a/x", true,
			false},
		query.Query_PutHeld_FullMethodName: {&query.PutRequest{Key: k, Lock: k, Token: 1}, "write", "a/x",
			"write a/x,read a/x", true, false},
		query.Query_Reserve_FullMethodName: {&query.ReserveRequest{Count: 1}, "lock", "*", "lock *", true, false},
		query.Query_Evict_FullMethodName: {&query.EvictRequest{Key: k}, "force", "a/x", "force a/x,read a/x", true,
			false},
		query.Query_EndSession_FullMethodName:   {&query.EndSessionRequest{Session: 7}, "root", "", "", true, false},
		query.Admin_EndSession_FullMethodName:   {&query.EndSessionRequest{Session: 7}, "root", "", "", true, true},
		query.Query_TransferLead_FullMethodName: {&query.TransferLeadRequest{Name: k}, "root", "", "", true, false},
		query.Admin_TransferLead_FullMethodName: {&query.TransferLeadRequest{Name: k}, "root", "", "", true, true},

		query.Query_Ends_FullMethodName:     {&query.StateRequest{}, "read", "*", any, true, false},
		query.Query_Names_FullMethodName:    {&query.StateRequest{}, "read", "*", any, true, false},
		query.Query_Sessions_FullMethodName: {&query.PageRequest{}, "read", "*", any, true, false},
		query.Query_Members_FullMethodName:  {&query.PageRequest{}, "read", "*", any, true, false},

		query.Admin_Here_FullMethodName:     {&query.HereRequest{}, "", "", "", true, true},
		query.Admin_Health_FullMethodName:   {&query.StateRequest{}, "read", "*", any, true, true},
		query.Admin_List_FullMethodName:     {&query.ListRequest{Prefix: k}, "read", "a/x*", lists, true, true},
		query.Admin_Peek_FullMethodName:     {&query.KeyRequest{Key: k}, "read", "a/x", reads, true, true},
		query.Admin_Check_FullMethodName:    {&query.HoldRequest{Key: k}, "read", "a/x", reads, true, true},
		query.Admin_Watch_FullMethodName:    {&query.WatchRequest{Prefixes: [][]byte{k}}, "read", "a/x*", lists, true, true},
		query.Admin_Audit_FullMethodName:    {&query.StateRequest{}, "read", "*", any, true, true},
		query.Admin_Members_FullMethodName:  {&query.PageRequest{}, "read", "*", any, true, true},
		query.Admin_Sessions_FullMethodName: {&query.PageRequest{}, "read", "*", any, true, true},
		query.Admin_Put_FullMethodName:      {&query.PutRequest{Key: k}, "write", "a/x", "write a/x", true, true},
		query.Admin_SetValue_FullMethodName: {&query.ValueRequest{Key: k, Token: 1, Seq: 1}, "lock", "a/x", "lock a/x", true,
			true},
		query.Admin_Evict_FullMethodName: {&query.EvictRequest{Key: k}, "force", "a/x", "force a/x,read a/x", true,
			true},
		query.Admin_Recover_FullMethodName: {&query.RecoverRequest{}, "root", "", "", true, true},

		query.Cluster_Found_FullMethodName:       {&query.FoundRequest{}, "", "", "", true, false},
		query.Cluster_VoterStatus_FullMethodName: {&query.VoterStatusRequest{}, "", "", "", true, false},
		query.Cluster_Probe_FullMethodName:       {&query.ProbeRequest{}, "", "", "", true, false},
		query.Cluster_ReportDisk_FullMethodName:  {&query.DiskReport{}, "", "", "", false, false},
		query.Cluster_Disks_FullMethodName:       {&query.DisksRequest{}, "", "", "", false, false},
	}
}

// TestAskersAndRights calls every method as a peer of every tier, with exactly the right that the
// question needs, with other rights, and without rights.
func TestAskersAndRights(t *testing.T) {
	r := newRig()
	all := questions()
	n := 0
	for _, s := range r.services.List {
		for _, m := range s.Desc.Methods {
			n++
			if _, ok := all["/"+s.Desc.ServiceName+"/"+m.MethodName]; !ok {
				t.Errorf("there is no rule for %s of %s", m.MethodName, s.Desc.ServiceName)
			}
		}
	}
	if n != len(all) {
		t.Errorf("%d methods, %d rules", n, len(all))
	}
	other := rights(t, "read b*", "write b*", "lock b*", "force a*")
	for method, c := range all {
		if ok, _ := r.ask(t, peer(capability.Root, nil), method, c.q); !ok {
			t.Errorf("%s is not answered to an instance", method)
		}
		if ok, _ := r.ask(t, peer(0, nil), method, c.q); ok {
			t.Errorf("%s is answered to an unauthenticated peer", method)
		}
		for tier, may := range map[capability.Tier]bool{capability.Member: c.members, capability.Guest: c.guests} {
			if c.words != "" {
				exact := rights(t, strings.Split(c.words, ",")...)
				if ok, _ := r.ask(t, peer(tier, exact), method, c.q); ok != may {
					t.Errorf("%s with %q, by a %s: %v", method, c.words, tier, ok)
				}
			}
			ok, denied := r.ask(t, peer(tier, other), method, c.q)
			if ok != (may && c.verb == "") || (denied != nil) != (may && c.verb != "") {
				t.Errorf("%s with other rights, by a %s: %v, %v", method, tier, ok, denied)
			}
			if want := (session.NotAllowedError{Verb: c.verb, Key: c.on, For: "cron-host"}); denied != nil &&
				c.verb != "force" && *denied != want {
				t.Errorf("%s with other rights: %+v, want %+v", method, denied, want)
			}
		}
		member := rights(t, "member", "force a/x")
		if ok, _ := r.ask(t, peer(capability.Member, member), method, c.q); ok != (c.members && c.verb != "root") {
			t.Errorf("%s, by a member: %v", method, ok)
		}
	}
}

// An instance may name the program for which it asks. Any other sender has the identity and the
// rights that its connection proves.
func TestAnOriginIsProvedOrForwarded(t *testing.T) {
	r := newRig()
	narrow, wide := rights(t, "read a*"), rights(t, "read *")
	program := nodeidtest.ID(9)
	says := &query.Origin{Rights: wide.Text(), Asker: program[:]}
	ask := func(from transport.Identity, method, key string) bool {
		ok, _ := r.ask(t, from, method, &query.KeyRequest{Origin: says, Key: []byte(key)})
		return ok
	}
	own := nodeidtest.ID(5)
	if !ask(peer(capability.Root, nil), query.Query_Peek_FullMethodName, "z") || r.rights.Text() != wide.Text() ||
		!proto.Equal(r.origin, says) {
		t.Errorf("an instance forwards %v, %v", r.rights, r.origin)
	}
	for _, tier := range []capability.Tier{capability.Member, capability.Guest} {
		method := query.Admin_Peek_FullMethodName
		if ask(peer(tier, narrow), method, "z") {
			t.Errorf("a %s asks under rights that it claims itself", tier)
		}
		if want := (&query.Origin{Rights: narrow.Text(), Asker: own[:]}); !ask(peer(tier, narrow), method, "a") ||
			r.rights != narrow || !proto.Equal(r.origin, want) {
			t.Errorf("a %s is forwarded as %v, %v", tier, r.rights, r.origin)
		}
	}
	if ask(peer(capability.Member, narrow), query.Query_Peek_FullMethodName, "z") {
		t.Error("a member asks the leader under rights that it claims itself")
	}
	if want := (&query.Origin{Asker: own[:]}); !ask(peer(capability.Root, nil), query.Admin_Peek_FullMethodName,
		"z") || r.rights != nil || !proto.Equal(r.origin, want) {
		t.Errorf("a program with the root secret is forwarded as %v, %v", r.rights, r.origin)
	}
	says.Rights = narrow.Text()
	if ask(peer(capability.Root, nil), query.Query_Peek_FullMethodName, "z") {
		t.Error("the leader does not check what an instance forwards")
	}
	says.Rights = "everything"
	if ask(peer(capability.Root, nil), query.Query_Peek_FullMethodName, "a") {
		t.Error("unreadable rights are accepted")
	}
	r.Started = func() bool { return false }
	_, err := Ask(t.Context(), query.NewAdminClient(r.services.As(peer(capability.Root, nil))),
		query.AdminClient.Here, &query.HereRequest{})
	if f, ok := errors.AsType[*Failed](err); !ok || f.Kind != query.Failure_NOT_READY {
		t.Errorf("before the start: %v", err)
	}
}

// leads returns the service of a leader that answers every question with the answer a.
func leads(a *replica.Answer, err error, last *replica.Question) transport.Services {
	look := func(_ context.Context, q replica.Question) (*replica.Answer, error) {
		*last = q
		return a, err
	}
	guard := &Guard{Started: func() bool { return true }}
	return transport.Services{List: []transport.Service{Query(look)}, Intercept: guard.Intercept}
}

// Limits count a forwarded question for the program, under its secret, and any other for its
// sender.
func TestQuestionsAreCountedForTheirUser(t *testing.T) {
	var last replica.Question
	services := leads(&replica.Answer{}, nil, &last)
	narrow, program := rights(t, "read *"), nodeidtest.ID(9)
	for _, c := range []struct {
		from   transport.Identity
		origin *query.Origin
		want   fair.Identity
	}{
		{peer(capability.Root, nil), nil, fair.Identity{Instance: nodeidtest.ID(5)}},
		{peer(capability.Root, nil), &query.Origin{Rights: narrow.Text(), Asker: program[:]},
			fair.Identity{Instance: program, Secret: narrow.Text()}},
		{peer(capability.Member, narrow), &query.Origin{Asker: program[:]},
			fair.Identity{Instance: nodeidtest.ID(5), Secret: narrow.Text()}},
	} {
		_, err := Ask(t.Context(), query.NewQueryClient(services.As(c.from)), query.QueryClient.Watch,
			&query.WatchRequest{Origin: c.origin})
		if err != nil || last.For != c.want || last.Op != replica.OpWatch || !last.Prefixes.Cover("any key") {
			t.Errorf("%v asks for %+v: %+v, %v", c.from, c.origin, last, err)
		}
	}
}

func TestARefusedQuestionNamesTheLimit(t *testing.T) {
	var last replica.Question
	full := fmt.Errorf("%w: watches have reached the limit of one instance: at most 64", replica.ErrBusy)
	services := leads(nil, full, &last)
	_, err := Ask(t.Context(), query.NewQueryClient(services.As(peer(capability.Root, nil))), query.QueryClient.Watch,
		&query.WatchRequest{AtOnce: true})
	if f, ok := errors.AsType[*Failed](err); !ok || f.Kind != query.Failure_BUSY || !errors.Is(err, replica.ErrBusy) ||
		err.Error() != full.Error() || last.Op != replica.OpEvents {
		t.Errorf("%v, of %v", err, last.Op)
	}
}

func TestAWatchHasFewPrefixes(t *testing.T) {
	var last replica.Question
	services := leads(&replica.Answer{}, nil, &last)
	for name, q := range map[string]*query.WatchRequest{
		"prefixes": {Prefixes: make([][]byte, sharedPrefixes+1)},
		"bytes":    {Prefixes: [][]byte{make([]byte, sharedBytes+1)}},
	} {
		_, err := Ask(t.Context(), query.NewQueryClient(services.As(peer(capability.Root, nil))),
			query.QueryClient.Watch, q)
		if err == nil || last.Op != "" {
			t.Errorf("too many %s: %v", name, err)
		}
	}
}

// For a request for several keys, a program gets only the keys that it may read, and the modes of
// the others. A tree is in the queue of each node above; the program need not see the node.
func TestOtherKeysAreHidden(t *testing.T) {
	tree := []lockfsm.Mode{lockfsm.ModeIX, lockfsm.ModeX}
	answer := &replica.Answer{
		Locks: []lockfsm.LockInfo{{Key: "a", Queue: []lockfsm.Standing{
			{Session: 3, Grant: lockfsm.Grant{Key: "a", Keys: []string{"b", "c"}}},
			{Grant: lockfsm.Grant{Key: "a", Keys: []string{"aa"}, Permits: 1}}, {Grant: lockfsm.Grant{Key: "a"}},
			{Grant: lockfsm.Grant{Key: "a", Keys: []string{"a/b"}, Modes: tree}}}}},
		Left: map[lockfsm.SessionID]time.Duration{3: time.Second},
	}
	var last replica.Question
	services := leads(answer, nil, &last)
	for text, want := range map[string][][]string{
		"":                          {{"a X", "b X", "c X"}, {"a S", "aa S"}, {"a X"}, {"a/b X tree"}},
		rights(t, "lock a*").Text(): {{"a X", " X", " X"}, {"a S", "aa S"}, {"a X"}, {"a/b X tree"}},
		rights(t, "write a").Text(): {{"a X", " X", " X"}, {"a S", " S"}, {"a X"}, {" X tree"}},
		rights(t, "read *").Text():  {{"a X", "b X", "c X"}, {"a S", "aa S"}, {"a X"}, {"a/b X tree"}},
		rights(t, "member").Text():  {{"a X", "b X", "c X"}, {"a S", "aa S"}, {"a X"}, {"a/b X tree"}},
	} {
		q := &query.KeyRequest{Origin: &query.Origin{Rights: text}, Key: []byte("a")}
		list, err := Ask(t.Context(), query.NewQueryClient(services.As(peer(capability.Root, nil))),
			query.QueryClient.Peek, q)
		if err != nil {
			t.Fatal(err)
		}
		for i, st := range list.Locks[0].Queue {
			var got []string
			for _, p := range append([]*query.Part{st.Part}, st.Also...) {
				text := string(p.Key) + map[lockfsm.Mode]string{lockfsm.ModeX: " X", lockfsm.ModeIS: " S"}[lockfsm.Mode(p.Mode)]
				if p.Tree {
					text += " tree"
				}
				got = append(got, text)
			}
			if !slices.Equal(got, want[i]) || i == 0 && st.Left != int64(time.Second) {
				t.Errorf("%q: request %d: %q, %v left", text, i, got, st.Left)
			}
		}
	}
}

// The authenticated name of a program that ends a hold is recorded. The name that the program gives
// itself is shown as a claim.
func TestWhatEndsAHoldIsNamedAsProved(t *testing.T) {
	var last replica.Question
	services := leads(&replica.Answer{Held: true}, nil, &last)
	id := nodeidtest.ID(9)
	for want, o := range map[string]*query.Origin{
		"alice":                                nil,
		"alice (instance " + id.String() + ")": {Asker: id[:]},
		"cron-host (instance " + id.String() +
			`, claims to be "alice")`: {Asker: id[:], Rights: rights(t, "force k", "read k").Text()},
	} {
		q := &query.EvictRequest{Origin: o, Key: []byte("k"), Token: 7, By: []byte("alice"), Reason: []byte("why")}
		_, err := Ask(t.Context(), query.NewQueryClient(services.As(peer(capability.Root, nil))),
			query.QueryClient.Evict, q)
		if err != nil || last.By != want || last.Reason != "why" || last.Token != 7 {
			t.Errorf("%+v, %v, want %q", last, err, want)
		}
	}
	if id := ID([]byte("short")); id != (nodeid.ID{}) {
		t.Errorf("%v was read", id)
	}
}

// A failure is returned with its text, whatever bytes the text contains. A malformed question does
// not reach the replica.
func TestFailuresAreTold(t *testing.T) {
	var last replica.Question
	for want, c := range map[query.Failure_Kind]error{
		query.Failure_WRONG:     errors.New("odd \xff text"),
		query.Failure_NOT_READY: context.DeadlineExceeded,
		query.Failure_DENIED:    &session.NotAllowedError{Verb: "read", Key: "k\xff", For: "x"},
		query.Failure_CONFLICT:  Conflict(errors.New("changed")),
		query.Failure_KEPT:      fmt.Errorf("%w: by n1", replica.ErrKept),
	} {
		services := leads(nil, c, &last)
		_, err := Ask(t.Context(), query.NewQueryClient(services.As(peer(capability.Root, nil))),
			query.QueryClient.Get, &query.KeyRequest{})
		f, ok := errors.AsType[*Failed](err)
		if !ok || f.Kind != want || f.Error() != strings.ToValidUTF8(c.Error(), "?") {
			t.Errorf("%v became %v", c, err)
		}
		if denied, ok := errors.AsType[*session.NotAllowedError](err); ok != (want == query.Failure_DENIED) ||
			ok && denied.Key != "k\xff" {
			t.Errorf("%v became %+v", c, denied)
		}
		if errors.Is(err, replica.ErrKept) != (want == query.Failure_KEPT) {
			t.Errorf("%v became %v", c, err)
		}
	}
	last = replica.Question{}
	services := leads(&replica.Answer{}, nil, &last)
	put := &query.PutRequest{Key: []byte("k"), Nonce: make([]byte, 17)}
	if _, err := Ask(t.Context(), query.NewQueryClient(services.As(peer(capability.Root, nil))),
		query.QueryClient.Put, put); err == nil || last.Op != "" {
		t.Errorf("a nonce of 17 bytes: %v, %+v", err, last)
	}
}

// A hold ends only with a reason and a name that can be shown and fit. The leader believes no
// instance about it.
func TestTheLeaderChecksWhatAForcedEndSays(t *testing.T) {
	long := func(n int) []byte { return []byte(strings.Repeat("x", n)) }
	for what, c := range map[string]struct {
		q    *query.EvictRequest
		text string // of the error, empty if the hold ends
	}{
		"all":               {&query.EvictRequest{By: []byte("x"), Token: 1, Reason: []byte("why")}, ""},
		"the limits":        {&query.EvictRequest{By: long(maxByBytes), Token: 1, Reason: long(lockfsm.MaxValueBytes)}, ""},
		"no reason":         {&query.EvictRequest{By: []byte("x"), Token: 1}, ""},
		"no name":           {&query.EvictRequest{Token: 1}, `By ""`},
		"a long name":       {&query.EvictRequest{By: long(maxByBytes + 1), Token: 1}, "128 bytes"},
		"a name of no text": {&query.EvictRequest{By: []byte("a\u202eb"), Token: 1}, plain.NotText},
		"a long reason": {&query.EvictRequest{By: []byte("x"), Token: 1, Reason: long(lockfsm.MaxValueBytes + 1)},
			"the reason has"},
		"a reason of no text": {&query.EvictRequest{By: []byte("x"), Token: 1, Reason: []byte("\x1b[2J")}, plain.NotText},
		"a reason of bytes":   {&query.EvictRequest{By: []byte("x"), Token: 1, Reason: []byte("\xff")}, plain.NotText},
		"no token":            {&query.EvictRequest{By: []byte("x")}, "token 0"},
	} {
		var last replica.Question
		services := leads(&replica.Answer{Held: true}, nil, &last)
		_, err := Ask(t.Context(), query.NewQueryClient(services.As(peer(capability.Root, nil))),
			query.QueryClient.Evict, c.q)
		if refused := c.text != ""; (err != nil) != refused || (last.Op == "") != refused ||
			refused && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, the replica was asked for %q", what, err, last.Op)
		}
	}
}

// The lead moves only to a name that an instance can have, and by a name and for a reason that can
// be shown.
func TestTheLeaderChecksWhatAMoveOfTheLeadSays(t *testing.T) {
	name := func(n string) *query.TransferLeadRequest {
		return &query.TransferLeadRequest{Name: []byte(n), By: []byte("x"), Reason: []byte("why")}
	}
	for what, c := range map[string]struct {
		q    *query.TransferLeadRequest
		text string // of the error, empty if the replica is asked
	}{
		"all":               {name("n"), ""},
		"the longest name":  {name(strings.Repeat("n", maxByBytes)), ""},
		"too long a name":   {name(strings.Repeat("n", maxByBytes+1)), "is no name of an instance"},
		"no name":           {name(""), "is no name of an instance"},
		"a name of no text": {name("a\x1b"), "is no name of an instance"},
		"by none":           {&query.TransferLeadRequest{Name: []byte("n")}, `By ""`},
		"a reason of bytes": {&query.TransferLeadRequest{Name: []byte("n"), By: []byte("x"), Reason: []byte("\xff")},
			plain.NotText},
	} {
		var last replica.Question
		services := leads(&replica.Answer{}, nil, &last)
		_, err := Ask(t.Context(), query.NewQueryClient(services.As(peer(capability.Root, nil))),
			query.QueryClient.TransferLead, c.q)
		if refused := c.text != ""; (err != nil) != refused || (last.Op == "") != refused ||
			refused && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, the replica was asked for %q", what, err, last.Op)
		}
	}
}
