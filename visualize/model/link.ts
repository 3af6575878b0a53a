import { effect } from '@preact/signals';
import { type Address, formatAddress, parseAddress } from './address.ts';
import { source } from './connection.ts';
import { openSource } from './load.ts';
import { marks } from './marks.ts';
import { chosenActor, followsEnd, goTo, jumpCount, place, range, recording } from './place.ts';

/** Browsers allow some 200 changes of the address in 30 s. */
const settleMs = 250;

/** Omits the place while the page follows the end of the trace. */
export function currentAddress(): Address {
  const openRecording = recording.value;
  const record = followsEnd.value ? undefined : openRecording?.seqAt(place.value);
  const [first, last] = range.value ?? [];
  const firstSeq = first === undefined ? undefined : openRecording?.seqAt(first);
  const lastSeq = last === undefined ? undefined : openRecording?.seqAt(last);
  return {
    source: source.value,
    ...(record !== undefined && { record }),
    ...(chosenActor.value !== undefined && { actor: chosenActor.value }),
    ...(firstSeq !== undefined && lastSeq !== undefined && { range: [firstSeq, lastSeq] as const }),
    ...(marks.value.length > 0 && { marks: marks.value }),
  };
}

/** A step replaces the address, a jump adds an entry to the browser's history. */
export function startAddress(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lastJumpCount = jumpCount.peek();
  effect(() => {
    const hash = formatAddress(currentAddress());
    if (recording.value === undefined) return;
    clearTimeout(timer);
    if (jumpCount.value !== lastJumpCount) {
      lastJumpCount = jumpCount.value;
      if (hash !== location.hash) history.pushState(null, '', hash);
      return;
    }
    timer = setTimeout(() => {
      if (hash !== location.hash) history.replaceState(null, '', hash);
    }, settleMs);
  });
  // Fired by back, forward, and edits of the address.
  addEventListener('popstate', () => visit(parseAddress(location.hash)));
}

function visit(address: Address): void {
  const openRecording = recording.value;
  if (openRecording === undefined || (address.source !== undefined && address.source !== source.value)) {
    void openSource(address.source ?? source.value, address);
    return;
  }
  const index = address.record === undefined ? undefined : openRecording.indexOf(address.record);
  if (index !== undefined) goTo(index);
  chosenActor.value = address.actor;
  marks.value = address.marks ?? [];
  const rangeIndexes = address.range?.map((seq) => openRecording.indexOf(seq)) ?? [];
  range.value =
    rangeIndexes[0] !== undefined && rangeIndexes[1] !== undefined ? [rangeIndexes[0], rangeIndexes[1]] : undefined;
}
