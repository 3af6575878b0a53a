import { render } from 'preact';
import { messageOf } from '../src/runtime/errors.ts';
import { keepDetails } from './details/details.tsx';
import { parseAddress } from './model/address.ts';
import { keepStory } from './model/causal-chain.ts';
import { connection, sources } from './model/connection.ts';
import { idle } from './model/idle.ts';
import { keepAddress } from './model/link.ts';
import { opened, openSource } from './model/load.ts';
import { place, recording } from './model/place.ts';
import { runClock } from './model/playing.ts';
import { addressInside, keepPath, loadSources, NotLetIn } from './model/source-data.ts';
import { drawn } from './model/time/frames.ts';
import { closeSearchOutside, keepSearching } from './search/searching.ts';
import { keepOpeningDropped } from './shell/drop-zone.tsx';
import { onKey } from './shell/keys.ts';
import { keepAnnouncing, keepTitle, Shell } from './shell/shell.tsx';
import { keepTheme } from './shell/theme.tsx';
import { escapeDrawnText } from './shell/visible-nodes.ts';
import { keepGrowing, keepInView } from './timeline/timeline-view.ts';

/** For tests and measurements; described in README.md. */
const hooks = {
  recording: () => recording.value,
  place: () => place.value,
  drawn,
  idle,
  get opened() {
    return opened;
  },
};

async function start(): Promise<void> {
  Object.assign(globalThis, { chartpilot: hooks });
  escapeDrawnText();
  keepTheme();
  runClock();
  keepInView();
  keepGrowing();
  keepDetails();
  keepStory();
  keepSearching();
  keepAnnouncing();
  keepTitle();
  keepOpeningDropped();
  document.addEventListener('keydown', onKey);
  document.addEventListener('pointerdown', closeSearchOutside);
  render(<Shell />, document.getElementById('page') ?? document.body);
  keepPath();
  const address = parseAddress(location.hash.length > 1 ? location.hash : addressInside());
  try {
    sources.value = await loadSources();
  } catch (error) {
    const reason = messageOf(error);
    connection.value = {
      kind: 'failed',
      reason:
        error instanceof NotLetIn
          ? reason
          : `The server of this page does not respond: ${reason}. Check that chartpilot visualize is still running.`,
    };
    return;
  }
  keepAddress();
  await openSource(address.source ?? 0, address);
}

void start();
