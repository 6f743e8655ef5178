package mortise

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Get returns the data of key and its revision, or nothing and revision 0 if it has none. The answer is linearizable. Data is for a few bytes that must
// outlive their writer and be the same to all: the configuration in force, the version of an order, how far a job has come. It is kept until somebody
// takes it away with Put, in the memory of every voter, and lives as long as the group: a group that is founded anew has none.
func (n *Node) Get(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	d, err := look(ctx, n, query.QueryClient.Get, &query.KeyRequest{Key: []byte(key)})
	return d.GetValue(), d.GetRevision(), err
}

// Put changes the data of key, at most 4,096 bytes, if it still is what it was at revision, as [Node.Get] or an earlier Put has told it; 0: if it has none. It returns
// the new revision. No data takes it away; the new revision is 0 then. It needs no lock, and heeds none: of those who put at once one succeeds, and for
// the others it is ErrConflict. At most 16,384 keys can have data; what is more is ErrNoRoom, as
// is data for which the group's budget (Config.MaxGroupBytes) has no room.
//
// After any other error, as when ctx ends, it may have happened or not, or may yet happen: Get tells only what there is now. Whoever must know puts once more at the
// same revision, and looks at what there is if that is ErrConflict; of the two no more than one takes effect, unless revision is 0 and somebody takes the data away. If the leader was lost in the middle of the call and another instance put something
// over ours before it could be asked again, ErrConflict is returned though ours was there for a moment.
func (n *Node) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	var nonce lockfsm.Nonce
	for nonce == (lockfsm.Nonce{}) {
		n.engine.Random(nonce[:])
	}
	return n.put(ctx, &query.PutRequest{Key: []byte(key), Data: data, Revision: revision, Nonce: nonce[:]})
}

// put is Put, perhaps for another program, which has drawn the nonce: it can repeat a question whose
// answer was lost.
func (n *Node) put(ctx context.Context, q *query.PutRequest) (uint64, error) {
	key, data, revision := string(q.Key), q.Data, q.Revision
	switch {
	case len(data) > lockfsm.MaxDataBytes:
		return 0, fmt.Errorf("%w: Put: the data has %d bytes, at most %d", ErrBadRequest, len(data), lockfsm.MaxDataBytes)
	case len(q.Nonce) != len(lockfsm.Nonce{}) || lockfsm.Nonce(q.Nonce) == lockfsm.Nonce{}:
		return 0, fmt.Errorf("%w: Put: the nonce is missing", ErrBadRequest)
	}
	s, err := look(ctx, n, query.QueryClient.Put, q)
	if err != nil {
		return 0, err
	}
	now := s.Revision
	switch code := lockfsm.Code(s.Code); {
	case code == lockfsm.Done || code == lockfsm.Changed && now == 0 && len(data) == 0 && revision != 0: // taken away, perhaps by a call of ours whose answer was lost
		return now, nil
	case code == lockfsm.Changed:
		return 0, fmt.Errorf("%w: %q is at revision %d, not %d", ErrConflict, key, now, revision)
	case code == lockfsm.BadKey:
		return 0, cmp.Or(badKey(key), fmt.Errorf("%w: %q", ErrBadKey, key))
	case code == lockfsm.OverGroupBudget:
		return 0, fmt.Errorf("Put %q: %w", key, client.BudgetErrorOf(code, s.Budget))
	}
	return 0, fmt.Errorf("%w: Put %q: too many keys have data, at most %d", ErrNoRoom, key, lockfsm.MaxData)
}
