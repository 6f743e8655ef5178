package copiedlock

import (
	"github.com/mortise-lock/mortise"
)

type job struct {
	name string
	lock mortise.Lock
}

type embedded struct{ mortise.Lock }

type alias = mortise.Lock

func use(l *mortise.Lock) {}

func wrongAssignment(l *mortise.Lock) {
	lock := *l // want `the assignment copies a mortise.Lock \(mortise.Lock\): use a pointer`
	use(&lock)
}

func wrongDeclaration(l *mortise.Lock) {
	var lock = *l // want `the declaration copies a mortise.Lock`
	use(&lock)
}

func wrongField(j *job, l *mortise.Lock) {
	j.lock = *l // want `the assignment copies`
}

func wrongParameter(l mortise.Lock) { // want `the parameter copies a mortise.Lock`
	use(&l)
}

func wrongResult(l *mortise.Lock) (_ mortise.Lock, ok bool) { // want `the result copies a mortise.Lock`
	return *l, true // want `the return copies a mortise.Lock`
}

func (e embedded) wrongReceiver() {} // want `the receiver copies a mortise.Lock \(embedded\)`

func wrongRange(jobs []job) {
	for _, j := range jobs { // want `the range copies a mortise.Lock \(job\)`
		use(&j.lock)
	}
}

func wrongRangeOfAnArray(locks [2]alias) { // want `the parameter copies`
	for i, lock := range locks { // want `the range copies a mortise.Lock`
		_ = i
		use(&lock)
	}
}

func wrongLiteral(l *mortise.Lock) *job {
	return &job{name: "a", lock: *l} // want `the literal copies a mortise.Lock`
}

func wrongSlice(l *mortise.Lock, all []mortise.Lock) []mortise.Lock {
	return append(all, *l) // want `the call copies a mortise.Lock`
}

func wrongSend(to chan<- job, j *job) {
	to <- *j // want `the send copies a mortise.Lock \(job\)`
}

func wrongInterface(l *mortise.Lock) any {
	return any(*l) // want `the call copies a mortise.Lock`
}

func wrongElement(all []job) {
	first := all[0] // want `the assignment copies a mortise.Lock \(job\)`
	use(&first.lock)
}

func wrongClosure(l *mortise.Lock) func() {
	return func() {
		lock := *l // want `the assignment copies`
		use(&lock)
	}
}

func wrongSwap(a, b *job) {
	*a, *b = *b, *a // want `the assignment copies` `the assignment copies`
}

func wrongConversion(j *job) {
	type other job
	o := other(*j) // want `the assignment copies a mortise.Lock`
	use(&o.lock)
}
