package transport

import (
	"net"
	"net/netip"
	"time"

	"github.com/mortise-lock/mortise/internal/fair"
)

// Limits on the connections that one host opens, unless it is a host of a voter.
const (
	hostBurst   = 4096 // connections that may be opened at once, as after a failover
	hostEvery   = time.Second / 64
	hostWait    = time.Second // a connection that would wait longer is closed
	refusedCost = 8           // a connection that is refused counts as so many

	// A connection that is closed because of its frames counts as so many of its secret and of its
	// host. So a peer that floods again and again is refused for most of the time.
	floodCost = 1024
	floodWait = floodCost * hostEvery // after the last flood, a secret is refused for at most this time
)

// hosts limits how many connections each host opens. The work of a handshake falls on this node
// before the dialer has proved anything, and a host can open any number of connections under new
// keys. So only its address can limit that work. The type hosts is safe for concurrent use.
type hosts struct{ rates *fair.Rates }

func newHosts() *hosts {
	return &hosts{fair.NewRates(fair.Rate{Every: hostEvery, Burst: hostBurst})}
}

// hostName returns the name by which the connections from an address are counted. A machine can
// have all addresses of an IPv6 network of 64 bits.
func hostName(addr string) string {
	ip, err := netip.ParseAddr(addr)
	if err != nil || ip.Unmap().Is4() {
		return addr
	}
	network, _ := ip.WithZone("").Prefix(64) // an IPv6 address has 64 bits
	return network.String()
}

// arrive counts a new connection. Its handshake may begin after the wait. It returns false if the
// connection must be closed.
func (h *hosts) arrive(addr string, now time.Time) (wait time.Duration, ok bool) {
	return h.rates.Reserve(hostName(addr), now, 1, hostWait)
}

// charge counts n more connections.
func (h *hosts) charge(addr string, now time.Time, n int) {
	h.rates.Charge(hostName(addr), now, n, hostWait)
}

func hostOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}
