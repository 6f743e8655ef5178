//go:build linux

// Package plan contains what the campaign of internal/lab/proctest/attack and its attackers both
// know: secrets, addresses, and the locks that an instance holds meanwhile.
//
// Concurrency: all functions are safe for concurrent use. Failure: errors are those of packages
// capability, credentials and guest.
package plan

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/guest"
)

// Cluster is the label of the cluster.
const Cluster = "mortise"

const enterWithin = 3 * time.Second

// Plan is what the campaign tells the attackers.
type Plan struct {
	Secret  string            // the root secret
	Derived map[string]string // by name, see Secrets
	Addrs   []string          // of the instances
	Agent   string            // URL of the agent's HTTP API
}

// Hold is a lock that an instance holds during the whole campaign. One of the fields is set.
type Hold struct {
	Key  string
	Keys []string
	Path string
}

// Held returns the locks that an instance holds, one for each attack on a hold.
func Held() []Hold {
	return []Hold{
		{Keys: []string{"held/part/a", "held/part/ledger"}},
		{Path: "held/above/7/orders"},
		{Key: "held/live"},
		{Key: "held/member"},
		{Keys: []string{"held/force/a", "held/force/ledger"}},
	}
}

// Outside returns the prefixes of keys that no caller on an instance locks.
func Outside() []string {
	return []string{"guest/", "fresh/", "program/", "work/", "filler/", "links/", "streams/"}
}

// Derive returns a secret that is derived from root and has the given rights.
func Derive(root, name string, rights ...string) (string, error) {
	c, err := capability.Build(name, time.Time{}, rights...)
	if err != nil {
		return "", err
	}
	return credentials.DeriveSecret(root, Cluster, c.Text())
}

// Secrets returns the derived secrets of the attackers and of the legitimate clients, by name.
func Secrets(root string) (map[string]string, error) {
	secrets := map[string]string{}
	for name, rights := range map[string][]string{
		"part":     {"lock held/part/a"},
		"above":    {"lock held/above"},
		"live":     {"lock held/live", "read held/live"},
		"member":   {"member"},
		"forcer":   {"lock held/force/a", "read held/force/a", "force held/force/a"},
		"worker":   {"lock work/*", "read work/*"},
		"streamer": {"lock streams/*", "read streams/*"},
		"linker":   {"lock links/*", "read links/*"},
		"guest":    {"lock guest/*"},
		"fresh":    {"lock fresh/*", "read fresh/*"},
		"program":  {"lock program/*"},
	} {
		var err error
		if secrets[name], err = Derive(root, name, rights...); err != nil {
			return nil, err
		}
	}
	return secrets, nil
}

// Enter opens an honest guest with a secret, and its session. The caller must close both.
func Enter(ctx context.Context, secret string, addrs []string) (*guest.Guest, *guest.Session, error) {
	g, err := guest.Open(mortise.Config{Name: "guest", Cluster: Cluster, Secret: secret, Join: addrs})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, enterWithin)
	defer cancel()
	s, err := g.Session(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	return g, s, nil
}
