/* The start of programs on a Cortex-M7: switch the arithmetic unit on, and go to the C library. */

#include <stdint.h>

extern void _start(void);
extern uint32_t __stack;

void Reset_Handler(void)
{
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20;
  __asm volatile("dsb; isb");
  _start();
  for (;;) {
  }
}

static void Fault(void)
{
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) const void *const vectors[7] = {
  (void *)0x20300000, Reset_Handler, Fault, Fault, Fault, Fault, Fault
};
