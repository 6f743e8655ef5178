//go:build !nextrules

package keeper

import "github.com/mortise-lock/mortise/lockfsm"

// laterKind reports whether a later version of the rules adds a kind that clients send.
func laterKind(lockfsm.Kind) bool { return false }
