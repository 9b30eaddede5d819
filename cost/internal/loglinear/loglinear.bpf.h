// Which bucket of a histogram nanoseconds fall in: 16 buckets an octave.

#pragma once

#define BUCKETS 576

static __always_inline __u32 bucket(__u64 v)
{
	__u32 e = 0;
	__u64 x = v;
	if (v < 16)
		return v;
	if (x >> 32) { e += 32; x >>= 32; }
	if (x >> 16) { e += 16; x >>= 16; }
	if (x >> 8) { e += 8; x >>= 8; }
	if (x >> 4) { e += 4; x >>= 4; }
	if (x >> 2) { e += 2; x >>= 2; }
	if (x >> 1) e += 1;
	__u32 b = (e - 3) * 16 + ((v >> (e - 4)) & 15);
	return b < BUCKETS ? b : BUCKETS - 1;
}
