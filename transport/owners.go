package transport

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"sync"
)

// connsEach is the maximum number of connections for calls from one instance. An instance needs one
// for questions and gossip, and one for each snapshot.
const connsEach = 8

// owners records the connections for calls of each instance. It is safe for concurrent use.
type owners struct {
	mu    sync.Mutex // guards all below
	conns map[nodeid.ID][]*accepted
	swept int // number of instances when closed connections were last removed
}

func (o *owners) own(instance nodeid.ID, conn *accepted) {
	if oldest := o.enter(instance, conn); oldest != nil {
		oldest.Close()
	}
}

func (o *owners) enter(instance nodeid.ID, conn *accepted) (oldest *accepted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.conns[instance], conn) {
		return nil
	}
	if o.conns == nil {
		o.conns = map[nodeid.ID][]*accepted{}
	}
	if len(o.conns) > 2*o.swept+64 {
		for each, conns := range o.conns {
			if o.conns[each] = living(conns); len(o.conns[each]) == 0 {
				delete(o.conns, each)
			}
		}
		o.swept = len(o.conns)
	}
	conns := append(living(o.conns[instance]), conn)
	if len(conns) > connsEach {
		oldest = conns[0]
		conns = slices.Delete(conns, 0, 1)
	}
	o.conns[instance] = conns
	return oldest
}

func living(conns []*accepted) []*accepted {
	return slices.DeleteFunc(conns, func(c *accepted) bool { return isClosed(c.gone) })
}
