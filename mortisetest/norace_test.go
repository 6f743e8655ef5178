//go:build !race

package mortisetest_test

// large is the number of nodes of a large cluster.
const large = 64
