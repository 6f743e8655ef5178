package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
)

const lightBytes = 200 << 10

const lightTTL = 10 * time.Second

// A light is an instance that consists only of a session: a client, and a port that does not
// listen. The leader treats it like any other instance without a vote.
type light struct {
	port   *transport.Port
	client *client.Client
	voters []nodeid.Endpoint

	attached atomic.Bool
}

type groupAnswer struct {
	Group  string
	Voters []nodeid.Endpoint
}

func groupOf(m *memberProcess) (g groupAnswer, err error) {
	text, err := m.ask("group")
	if err == nil {
		err = json.Unmarshal([]byte(text), &g)
	}
	return g, err
}

func describeGroup(m Member) (string, error) {
	member, ok := m.(mortiseMember)
	if !ok {
		return "", errors.New("it is not a node of mortise")
	}
	s := member.Status()
	g := groupAnswer{Group: s.Group}
	for _, v := range s.Voters {
		id, err := nodeid.Parse(v.Instance)
		if err != nil {
			return "", err
		}
		g.Voters = append(g.Voters, nodeid.Endpoint{ID: id, Addr: v.Address})
	}
	text, err := json.Marshal(g)
	return string(text), err
}

func lightSecurity(encrypted bool) (transport.Security, error) {
	if !encrypted {
		return nil, nil
	}
	return credentials.FromSecret(credentials.SecretConfig{Secret: benchSecret, Cluster: "mortise"})
}

// openLight opens session i. changed is called with each new phase of the session, on a goroutine
// that must not block.
func openLight(g groupAnswer, security transport.Security, i int, changed func(client.Phase)) (*light, error) {
	group, err := strconv.ParseUint(g.Group, 16, 64)
	if err != nil {
		return nil, err
	}
	l := &light{}
	for _, v := range g.Voters {
		l.voters = append(l.voters, v)
	}
	random := func(b []byte) { _, _ = rand.Read(b) }
	l.client = client.New(client.Config{Clock: clock.Boot(), TTL: lightTTL, Send: l.send, Random: random,
		Changed: func(p client.Phase) {
			l.attached.Store(p == client.Attached)
			changed(p)
		}})
	l.port, err = transport.New(transport.Config{
		Cluster: "mortise", Self: transport.Self{Key: nodeid.NewKey(random), Group: group}, Listener: transport.Deaf(),
		Dial: dialTCP, Handler: lightHandler{l}, TLS: security,
	})
	if err != nil {
		l.client.Close()
		return nil, err
	}
	l.client.Rebind(fmt.Appendf(nil, `{"name":"light-%d","guest":true}`, i), g.Voters)
	return l, nil
}

func (l *light) send(to nodeid.Endpoint, renewals, commands []byte) error {
	if len(renewals) > 0 && l.attached.Load() {
		l.port.Spare(to.ID, l.voters, 2) // a node also keeps two spare links, and adds them when it is attached
	}
	return l.port.Send(to,
		transport.Frame{Renewals: renewals, Commands: commands})
}

func (l *light) close() error {
	if l == nil {
		return nil
	}
	l.client.Close()
	return l.port.Close()
}

type lightHandler struct{ *light }

var errLight = errors.New("a light session answers nothing")

func (h lightHandler) Frame(from transport.Identity, f transport.Frame) {
	if len(f.Replies) > 0 {
		h.client.Receive(from.Instance, f.Replies)
	}
}

func (h lightHandler) Down(peer transport.Identity, _ error) { h.client.Down(peer.Instance) }

func (h lightHandler) MaySendSnapshot(transport.Identity, *raftpb.Message) error { return errLight }
func (h lightHandler) Snapshot(transport.Identity, *raftpb.Message) error        { return errLight }

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}
