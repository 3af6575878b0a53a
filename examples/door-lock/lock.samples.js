/** Inputs for `chartpilot generate` and `explore` that the machine does not define. */
export const input = { openMs: 5_000 };
export const events = {
  'code.rejected': [{ at: 'front door' }],
  'bolt.drawn': [{}],
  'bolt.shot': [{}],
};
export const invariants = {
  'three wrong codes at most': ({ context }) => context.wrong <= 3,
};
