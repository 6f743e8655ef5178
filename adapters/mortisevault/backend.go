package mortisevault

import (
	"github.com/hashicorp/vault/sdk/physical"

	"github.com/mortise-lock/mortise"
)

const defaultPrefix = "vault/"

// Options change the defaults of New.
type Options struct {
	// Prefix is the beginning of the keys of all locks, at most 256 bytes. All servers that share
	// their storage use the same Prefix. Empty means "vault/".
	Prefix string
}

// Backend is a physical.HABackend whose locks are those of mortise.
type Backend interface {
	physical.Backend
	physical.HABackend
}

// New returns a Backend with the data of the given storage. If the storage is a
// physical.Transactional, the Backend is one, too. The storage may be nil if only the locks are
// used, as for the ha_storage of Vault.
func New(node *mortise.Node, storage physical.Backend, o Options) Backend {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	b := backend{storage, locks{node, o.Prefix}}
	if transactions, is := storage.(physical.Transactional); is {
		return transactional{b, transactions}
	}
	return b
}

type backend struct {
	physical.Backend
	locks
}

type transactional struct {
	backend
	physical.Transactional
}

// locks has the methods of a physical.HABackend.
type locks struct {
	node   *mortise.Node
	prefix string
}

// LockWith returns an unlocked lock. While it is held, all servers read the value with its Value.
// The value has at most 1,024 bytes. The error is always nil.
func (l locks) LockWith(key, value string) (physical.Lock, error) {
	return &lock{node: l.node, key: l.prefix + key, value: value}, nil
}

// HAEnabled returns true.
func (locks) HAEnabled() bool { return true }
