package session

import (
	"fmt"

	"github.com/mortise-lock/mortise/lockfsm"
)

// This file is how a client learns that a budget of bytes has no room for its request, and which budget.

// BudgetError answers a request that a budget of bytes has no room for. It is ErrNoRoom for errors.Is.
type BudgetError struct {
	Group bool   // the group's budget, not the session's
	Bytes uint64 // the budget
}

// Error names the budget and says how to get room.
func (e *BudgetError) Error() string {
	budget := FormatBytes(e.Bytes)
	if e.Group {
		return "mortise: the group's budget of " + budget +
			" for all locks, waiters, values, data and sessions is used up: release locks, or raise Config.MaxGroupBytes on all instances"
	}
	return "mortise: the session's budget of " + budget +
		" for its locks, waiters and values is used up: release locks, use another session, or raise Config.MaxSessionBytes on all instances"
}

// Is reports whether target is ErrNoRoom.
func (e *BudgetError) Is(target error) bool { return target == ErrNoRoom }

// BudgetErrorOf returns the error for a code that names a budget, and nil for any other.
func BudgetErrorOf(code lockfsm.Code, budget uint64) error {
	if !namesBudget(code) {
		return nil
	}
	return &BudgetError{Group: code == lockfsm.OverGroupBudget, Bytes: budget}
}

// Budgets are the budgets of bytes that a group is to adopt; 0 leaves one as it is.
type Budgets struct{ Session, Group uint64 }

// FormatBytes writes a number of bytes in the largest unit that needs no fraction.
func FormatBytes(n uint64) string {
	units := [...]string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	unit := 0
	for ; n != 0 && n%1024 == 0 && unit < len(units)-1; unit++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, units[unit])
}

func namesBudget(code lockfsm.Code) bool {
	return code == lockfsm.OverSessionBudget || code == lockfsm.OverGroupBudget
}

func (r *reply) appendBudget(b []byte) []byte {
	if !namesBudget(r.code) {
		return b
	}
	return appendUvarints(b, r.budget)
}

func (r *reply) decodeBudget(f *fields) {
	if namesBudget(r.code) {
		r.budget = f.uvarint()
	}
}
