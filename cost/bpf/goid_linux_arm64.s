#include "textflag.h"

// func ofGoroutine(offset uintptr) uint64
TEXT ·ofGoroutine(SB), NOSPLIT, $0-16
	MOVD offset+0(FP), R0
	ADD g, R0, R0
	MOVD (R0), R0
	MOVD R0, ret+8(FP)
	RET

// func ofThread(offset uintptr) uint64
TEXT ·ofThread(SB), NOSPLIT, $0-16
	MOVD 48(g), R1 // its thread
	MOVD offset+0(FP), R0
	ADD R1, R0, R0
	MOVD (R0), R0
	MOVD R0, ret+8(FP)
	RET
