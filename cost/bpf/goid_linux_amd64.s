#include "textflag.h"

// func ofGoroutine(offset uintptr) uint64
TEXT ·ofGoroutine(SB), NOSPLIT, $0-16
	MOVQ (TLS), AX
	MOVQ offset+0(FP), BX
	MOVQ (AX)(BX*1), AX
	MOVQ AX, ret+8(FP)
	RET

// func ofThread(offset uintptr) uint64
TEXT ·ofThread(SB), NOSPLIT, $0-16
	MOVQ (TLS), AX
	MOVQ 48(AX), AX // its thread
	MOVQ offset+0(FP), BX
	MOVQ (AX)(BX*1), AX
	MOVQ AX, ret+8(FP)
	RET
