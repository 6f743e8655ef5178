package instance

import (
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

// maxOwnSessions limits the user's own sessions of one node. The leader's limit is higher, because
// it includes old sessions that have not expired.
const maxOwnSessions = 128

// Open begins a session of the user's own. The session ends with Drop, or when this instance ends.
func (n *Instance) Open(ttl time.Duration) (*client.Client, error) {
	own := client.New(client.Config{
		Clock: n.env.clock, TTL: ttl, Send: n.submit, Random: n.env.random, Logger: n.logger,
		Stays: n.config.Stays, StayIdle: n.config.StayIdle, Watch: (&observer{node: n, own: true}).news,
	})
	if err := n.sessions.Add(own); err != nil {
		own.Close()
		return nil, err
	}
	return own, nil
}

// Drop closes a session of the user's own.
func (n *Instance) Drop(c *client.Client) {
	n.sessions.Drop(c)
	c.Close()
}

// Clients returns the clients of all sessions. The first client is that of this instance's own
// session.
func (n *Instance) Clients() []*client.Client {
	var all []*client.Client
	for _, c := range n.sessions.List() {
		if c, ok := c.(*client.Client); ok {
			all = append(all, c)
		}
	}
	return all
}
