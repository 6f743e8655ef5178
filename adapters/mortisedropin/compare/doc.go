// Package compare runs the same tests with the packages of mortisedropin and with the libraries
// whose methods they have. It is a module of its own, so that users of mortisedropin get none of
// the libraries. Redis is one in memory, in the process of the test. For etcd, only the methods are
// compared.
package compare
