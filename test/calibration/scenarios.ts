/** What a supervisor may see of Envoys that restart hot, one story each (spec/envoy-hot-restart.md §0, §2, §4). */
import {
  answers,
  blocked,
  closes,
  crash,
  drain,
  drainGradually,
  exits,
  hang,
  kill,
  live,
  look,
  loseMemory,
  mark,
  reopenLogs,
  repair,
  type Scenario,
  type Step,
  start,
  term,
} from './scenario.ts';

/** Epoch 0 serves. */
const serving: readonly Step[] = [start(0), live('0')];
/** A child of it has the admin port, and waits for its configuration for as long as it lives. */
const waitingChild: readonly Step[] = [...serving, start(1, { configuration: 'never there' }), answers('1')];

/** Epoch 1 serves, epoch 0 drains for a time that no scenario waits for. */
const longDrain = { parentShutdownMs: 40_000 };
const handedOver: readonly Step[] = [...serving, start(1, longDrain), live('1')];

const again = '1 again';

/** The longest first: they run side by side. */
export const scenarios: readonly Scenario[] = [
  {
    name: 'a draining parent is killed: its child blocks, ignores SIGTERM, serves on, and aborts',
    steps: [...handedOver, kill('0'), exits('0'), look, blocked('1'), look, term('1'), exits('1'), look],
  },
  {
    name: 'a draining parent is told to end: its child is doomed all the same',
    steps: [...handedOver, term('0'), exits('0'), blocked('1'), exits('1')],
  },
  {
    name: 'the parent dies while its child waits for its configuration',
    steps: [...waitingChild, kill('0'), exits('0'), blocked('1'), look, exits('1')],
  },
  {
    name: 'the parent dies while its child waits for its configuration: with the configuration it blocks',
    steps: [
      ...[...serving, start(1, { configuration: 'awaited', giveUpMs: 2_000 }), answers('1')],
      ...[kill('0'), exits('0'), blocked('1'), look, exits('1')],
      ...[start(1, { name: again }), exits(again)],
    ],
  },
  {
    name: 'the parent dies while its child waits for its configuration, and the child is told to end',
    steps: [...waitingChild, kill('0'), exits('0'), term('1'), blocked('1'), look, exits('1')],
  },
  {
    name: 'the parent dies while its child waits for its configuration, and the child is killed: the mark stays',
    steps: [...waitingChild, kill('0'), exits('0'), kill('1'), exits('1'), start(1, { name: again }), exits(again)],
  },
  {
    name: 'a child of a doomed one gets no answer, for ever: its parent blocks and aborts, it waits on',
    steps: [
      ...[...handedOver, kill('0'), exits('0'), start(2), look, exits('1'), look],
      ...[term('2'), exits('2'), look, start(2, { name: '2 again' }), exits('2 again')],
    ],
  },
  {
    name: 'a child of a blocked one gets no answer either',
    steps: [
      ...handedOver,
      kill('0'),
      exits('0'),
      blocked('1'),
      start(2),
      look,
      exits('1'),
      kill('2'),
      exits('2'),
      look,
    ],
  },
  {
    name: 'a child of one that is not live and has lost its parent is refused',
    steps: [...waitingChild, kill('0'), exits('0'), start(2), exits('2'), exits('1'), look],
  },
  {
    name: 'a child that is not live is told to end while its grandparent drains: only two can be left, and both end',
    steps: [
      ...[...handedOver, start(2, { configuration: 'never there' }), exits('0'), answers('2'), look],
      ...[term('2'), exits('1', '2'), look],
    ],
  },
  {
    name: 'a doomed child is told to end: it blocks at once',
    steps: [...handedOver, kill('0'), exits('0'), term('1'), blocked('1'), look, exits('1')],
  },
  {
    name: 'a child without a parent aborts and leaves its mark; a first epoch starts afresh',
    steps: [
      ...[...serving, kill('0'), exits('0'), start(1), exits('1')],
      ...[start(1, { name: again }), exits(again), start(0, { name: '0 again' }), live('0 again'), look],
    ],
  },
  {
    name: 'a gap of two: the child finds no parent, aborts and leaves its mark',
    steps: [...serving, start(2), exits('2'), look, start(1), exits('1'), look],
  },
  {
    name: 'a hot restart: the parent leaves when its time is over',
    steps: [...serving, look, start(1), live('1'), look, exits('0'), look],
  },
  {
    name: 'three hot restarts in a row',
    steps: [
      ...[...serving, start(1), live('1'), exits('0')],
      ...[start(2), live('2'), exits('1'), start(3), live('3'), look, exits('2'), look],
    ],
  },
  {
    name: 'the child’s own parent shutdown time counts',
    steps: [start(0, longDrain), live('0'), start(1, { parentShutdownMs: 5_000 }), live('1'), exits('0')],
  },
  {
    name: 'a child that starts cuts the drain of its grandparent short',
    steps: [...handedOver, start(2, { configuration: 'awaited' }), exits('0'), look, live('2'), look, exits('1')],
  },
  {
    name: 'a child is refused while its parent still initializes, and later is not',
    steps: [
      ...[...serving, start(1, { configuration: 'awaited' }), answers('1'), look, start(2), exits('2'), look],
      ...[live('1'), exits('0'), start(2, { name: '2 again' }), live('2 again'), look],
    ],
  },
  {
    name: 'a child is killed before it is live: the next is refused until the mark is cleared',
    steps: [
      ...[...waitingChild, look, kill('1'), exits('1'), look, start(1, { name: again }), exits(again), look],
      ...[repair, start(1, { name: 'third' }), live('third'), look, exits('0'), look],
    ],
  },
  {
    name: 'a child crashes before it is live: the mark stays as well',
    steps: [...waitingChild, crash('1'), exits('1'), look, start(1, { name: again }), exits(again)],
  },
  {
    name: 'a child that is not live is told to end: its parent ends, too',
    steps: [...waitingChild, term('1'), exits('0', '1'), look],
  },
  {
    name: 'a first epoch that is not live is told to end',
    steps: [start(0, { configuration: 'never there' }), answers('0'), look, term('0'), exits('0'), look],
  },
  {
    name: 'the mark is set although nobody initializes: the parent serves, its children are refused',
    steps: [...serving, mark, look, start(1), exits('1'), look, repair, look, start(1, { name: again }), live(again)],
  },
  {
    name: 'the newest is told to end while its parent drains: both end',
    steps: [...handedOver, term('1'), exits('0', '1'), look],
  },
  {
    name: 'the newest crashes while its parent drains: nobody serves until the same number starts again',
    steps: [
      ...[...handedOver, look, crash('1'), exits('1'), look],
      ...[start(1, { name: again }), live(again), look, exits('0'), look],
    ],
  },
  {
    name: 'the newest is killed while its parent drains: the same',
    steps: [...handedOver, kill('1'), exits('1'), look, start(1, { name: again }), live(again), exits('0')],
  },
  {
    name: 'the last one crashes: epoch 0 starts at once',
    steps: [...serving, crash('0'), exits('0'), look, start(0, { name: '0 again' }), live('0 again'), look],
  },
  {
    name: 'epoch 0 beside epoch 0 gets no address and does no harm',
    steps: [
      ...[...serving, start(0, { name: 'second 0' }), exits('second 0'), look],
      ...[start(1), live('1'), exits('0'), look],
    ],
  },
  {
    name: 'epoch 0 beside epoch 1 gets no address and tears the shared memory',
    steps: [
      ...[...serving, start(1), live('1'), exits('0'), start(0, { name: 'second 0' }), exits('second 0'), look],
      ...[start(2), exits('2'), look],
    ],
  },
  {
    name: 'memory that epoch 0 has torn is good again when its mark is cleared',
    steps: [
      ...[...serving, start(1), live('1'), exits('0'), start(0, { name: 'second 0' }), exits('second 0')],
      ...[repair, start(2), live('2'), look, exits('1'), look],
    ],
  },
  {
    name: 'epoch 0 beside epoch 0 leaves the mark as it is',
    steps: [...serving, mark, start(0, { name: 'second 0' }), exits('second 0'), start(1), exits('1'), look],
  },
  {
    name: 'epoch 0 beside a draining epoch 1 whose child has crashed: it serves, and epoch 1 stays',
    steps: [
      ...[...serving, start(1), live('1'), exits('0'), start(2, longDrain), live('2'), crash('2'), exits('2')],
      ...[start(0, { name: '0 again' }), live('0 again'), look, start(1, { name: again }), exits(again), look],
      ...[term('1'), exits('1'), look, start(1, { name: 'third 1' }), live('third 1'), exits('0 again'), look],
    ],
  },
  {
    name: 'a gap of three finds its address taken and does no harm',
    steps: [...serving, start(3), exits('3'), look, start(1), live('1'), exits('0')],
  },
  {
    name: 'a gap of four works by accident',
    steps: [...serving, start(4), live('4'), look, exits('0'), look],
  },
  {
    name: 'a child of a base id that nobody has used has no shared memory',
    steps: [start(1), exits('1'), look],
  },
  {
    name: 'the shared memory is removed under a parent: its child aborts, it serves on',
    steps: [...serving, loseMemory, start(1), exits('1'), look],
  },
  {
    name: 'a bootstrap that cannot be read: the parent keeps its admin port, the mark stays',
    steps: [
      ...serving,
      start(1, { configuration: 'broken' }),
      exits('1'),
      look,
      start(1, { name: again }),
      exits(again),
    ],
  },
  {
    name: 'a first bootstrap that cannot be read leaves nothing behind that matters',
    steps: [start(0, { configuration: 'broken' }), exits('0'), start(0, { name: '0 again' }), live('0 again'), look],
  },
  {
    name: 'a child whose listener port is taken: the parent has lost its admin port, the mark stays',
    steps: [
      ...[...serving, start(1, { configuration: 'listener port taken' }), exits('1'), look],
      ...[start(1, { name: again }), exits(again), look],
    ],
  },
  {
    name: 'a child whose admin port is taken: the parent has lost its own',
    steps: [
      ...[...serving, start(1, { configuration: 'admin port taken' }), exits('1'), look],
      ...[start(1, { name: again }), exits(again)],
    ],
  },
  {
    name: 'two base ids share the listener port; each drains and ends by itself',
    steps: [
      ...[...serving, start(0, { name: 'other 0', family: 'beside' }), live('other 0'), look],
      ...[drain('0'), look, term('0'), exits('0'), look],
      ...[start(1, { name: 'other 1', family: 'beside' }), live('other 1'), look, exits('other 0'), look],
    ],
  },
  {
    name: 'a doomed child is replaced by another base id before it aborts',
    steps: [
      ...[...handedOver, kill('0'), exits('0')],
      ...[start(0, { name: 'other 0', family: 'beside' }), live('other 0'), drain('1'), kill('1'), exits('1'), look],
    ],
  },
  {
    name: 'listeners that drain gradually take connections until the drain time is over',
    steps: [
      start(0, { drainMs: 3_000 }),
      live('0'),
      drainGradually('0'),
      look,
      closes('0'),
      look,
      term('0'),
      exits('0'),
    ],
  },
  {
    name: 'a child takes over from one that drains gradually',
    steps: [
      ...[start(0, { drainMs: 30_000 }), live('0'), drainGradually('0'), look],
      ...[start(1), live('1'), look, exits('0'), look],
    ],
  },
  {
    name: 'listeners that were drained are opened anew by the child',
    steps: [...serving, drain('0'), look, start(1), live('1'), look, exits('0'), look],
  },
  {
    name: 'log files are opened anew: nothing else happens',
    steps: [...serving, reopenLogs('0'), look, start(1), live('1'), reopenLogs('0'), reopenLogs('1'), exits('0'), look],
  },
  {
    name: 'a child of one that hangs gets no answer',
    steps: [...serving, hang('0'), start(1), look, kill('0'), exits('0'), look, term('1'), exits('1'), look],
  },
  {
    name: 'told to end, and in no state to do it: SIGKILL helps',
    steps: [...serving, hang('0'), kill('0'), exits('0'), look],
  },
];
