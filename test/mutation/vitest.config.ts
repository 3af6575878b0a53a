import { defineConfig } from 'vitest/config';

/** Tests that check a machine of the agent within seconds. */
export default defineConfig({
  test: {
    include: ['test/model/agent/**/*.test.ts', 'test/model/every-event.test.ts', 'test/model/seeds.test.ts'],
    // Halves the duration. The files share no state.
    isolate: false,
    testTimeout: 5_000,
  },
});
