/** What `chartpilot generate` and `explore` cannot read off the machine. */
export const input = { openMs: 5_000 };
export const events = {
  'code.rejected': [{ at: 'front door' }],
  'bolt.drawn': [{}],
  'bolt.shot': [{}],
};
export const invariants = {
  'three wrong codes at most': ({ context }) => context.wrong <= 3,
};
