package transport

import (
	"net"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// noteUnproven logs that a hello was refused. A hello that claims the identity of a linked instance
// gets its own line, with both addresses. All other hellos share a line.
func (p *table) noteUnproven(g *wire.Greeting, remote net.Addr, refusal *wire.Refusal) {
	h := &wire.Hello{}
	if refusal.Reason == wire.Refusal_MALFORMED && proto.Unmarshal(g.Hello, h) == nil {
		claimed := nodeid.Of(h.Key)
		if link := p.linkAddr(claimed); link != nil {
			p.notices.warnOf(claimed.String(),
				"transport: refused a process that claims the identity of a linked instance and cannot prove it: "+
					"unless the network is at fault, a process with the secret or a certificate attacks; the instance stays "+
					"linked",
				"instance", claimed, "link", link, "other", remote, "why", refusal.Text)
			return
		}
	}
	p.notices.warn("transport: refused a connection", "remote", remote, "why", refusal.Text)
}

func (p *table) linkAddr(to nodeid.ID) net.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.links[to]; l != nil && l.state == up {
		return l.stream.conn.RemoteAddr()
	}
	return nil
}
