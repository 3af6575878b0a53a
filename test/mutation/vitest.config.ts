import { defineConfig } from 'vitest/config';

/** The tests that say within seconds whether a machine of the agent still does what it should. */
export default defineConfig({
  test: {
    include: ['test/model/agent/**/*.test.ts', 'test/model/every-event.test.ts', 'test/model/seeds.test.ts'],
    // Half the time of a run: nothing in these files changes anything that the others see.
    isolate: false,
    testTimeout: 5_000,
  },
});
