//go:build !race

package mortisetest_test

const large = 64
