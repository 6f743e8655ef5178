// Package fair divides shared resources among instances and derived secrets.
//
// A limit for each instance alone is no limit, because a process can prove any number of instances.
// It has only one secret. So [Places] also limits all instances that prove the same derived secret,
// and all derived secrets together, so that the instances with the root secret keep a reserve.
// [Rates] limits how often each of them does something.
//
// # Guarantees
//
//   - A user that has reached its limit takes no place of another secret or of the root secret.
//   - Give returns exactly what Take has taken. Users without places take no memory.
package fair
