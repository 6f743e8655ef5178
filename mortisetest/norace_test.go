//go:build !race

package mortisetest_test

// large is how many nodes a large cluster has.
const large = 64
