package copiedlock

import (
	"context"
	"unsafe"

	"github.com/mortise-lock/mortise"
)

type holder struct{ lock *mortise.Lock }

func rightPointer(l *mortise.Lock) *mortise.Lock {
	lock := l
	return lock
}

func rightHolder(h holder) holder {
	other := h
	return other
}

func rightRange(locks []*mortise.Lock) {
	for _, lock := range locks {
		use(lock)
	}
}

func rightRangeByIndex(jobs []job) {
	for i := range jobs {
		use(&jobs[i].lock)
	}
}

func rightNew() (*job, *mortise.Lock) {
	j := job{name: "new"}
	return &j, new(mortise.Lock)
}

func rightZero() *mortise.Lock {
	var lock mortise.Lock
	return &lock
}

func rightLiteral() *embedded {
	e := embedded{mortise.Lock{}}
	return &e
}

func (e *embedded) rightReceiver() { use(&e.Lock) }

func rightSend(to chan<- *mortise.Lock, l *mortise.Lock) {
	to <- l
}

func rightMap(l *mortise.Lock) map[string]*mortise.Lock {
	return map[string]*mortise.Lock{l.Key(): l}
}

func rightClosure(l *mortise.Lock) func() error {
	return func() error { return l.Unlock(context.Background()) }
}

func rightSize(l *mortise.Lock) uintptr {
	return unsafe.Sizeof(*l)
}

func rightBlank(l *mortise.Lock) {
	_ = *l
}

func rightAddress(j *job) *mortise.Lock {
	return &j.lock
}

func rightNode(node *mortise.Node, ctx context.Context) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	all := append([]*mortise.Lock{}, lock)
	return all[0].Unlock(ctx)
}

func rightGeneric[T any](v T) T { return v }

func rightMethod(j *job) mortise.Token { return j.lock.Token() }
