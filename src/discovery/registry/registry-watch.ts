/** What registries that change by themselves are to a statechart. */
import { fromCallback } from 'xstate';

/** @param state tells of them; whoever stops listening ends what they do in the background */
export function registryWatch(state: {
  onRegistryChanged(listener: () => void): () => void;
  readonly registries: { stop(): void };
}) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    const forget = state.onRegistryChanged(() => sendBack({ type: 'registries.changed' }));
    return () => {
      forget();
      state.registries.stop();
    };
  });
}
