/** Scenarios of hot restarts as a supervisor observes them. */
import {
  adminOpen,
  blocked,
  type CalibrationStep,
  closes,
  crash,
  drain,
  drainGradually,
  exits,
  hang,
  kill,
  live,
  loseMemory,
  mark,
  observe,
  reopenLogs,
  repair,
  type Scenario,
  start,
  term,
} from './scenario.ts';

/** Epoch 0 serves. */
const servingSteps: readonly CalibrationStep[] = [start(0), live('0')];
/** A child of epoch 0 has the admin port and waits for its configuration without a timeout. */
const waitingChild: readonly CalibrationStep[] = [
  ...servingSteps,
  start(1, { configuration: 'never there' }),
  adminOpen('1'),
];

/** Epoch 1 serves while epoch 0 drains for longer than any scenario waits. */
const longDrain = { parentShutdownMs: 40_000 };
const handedOver: readonly CalibrationStep[] = [...servingSteps, start(1, longDrain), live('1')];

const repeatedChild = '1 again';

/** Scenarios run concurrently, so the longest ones come first. */
export const scenarios: readonly Scenario[] = [
  {
    name: 'a child whose draining parent is killed blocks, ignores SIGTERM, continues to serve, and aborts',
    steps: [...handedOver, kill('0'), exits('0'), observe, blocked('1'), observe, term('1'), exits('1'), observe],
  },
  {
    name: 'a child whose draining parent receives SIGTERM blocks and aborts',
    steps: [...handedOver, term('0'), exits('0'), blocked('1'), exits('1')],
  },
  {
    name: 'a waiting child whose parent was killed blocks and aborts',
    steps: [...waitingChild, kill('0'), exits('0'), blocked('1'), observe, exits('1')],
  },
  {
    name: 'a waiting child whose parent was killed blocks when it receives its configuration',
    steps: [
      ...[...servingSteps, start(1, { configuration: 'awaited', giveUpMs: 2_000 }), adminOpen('1')],
      ...[kill('0'), exits('0'), blocked('1'), observe, exits('1')],
      ...[start(1, { name: repeatedChild }), exits(repeatedChild)],
    ],
  },
  {
    name: 'a waiting child whose parent was killed blocks when it receives SIGTERM',
    steps: [...waitingChild, kill('0'), exits('0'), term('1'), blocked('1'), observe, exits('1')],
  },
  {
    name: 'a waiting child that is killed after its parent leaves the mark set',
    steps: [
      ...waitingChild,
      kill('0'),
      exits('0'),
      kill('1'),
      exits('1'),
      start(1, { name: repeatedChild }),
      exits(repeatedChild),
    ],
  },
  {
    name: 'a child of a doomed epoch waits forever for a response, while its parent blocks and aborts',
    steps: [
      ...[...handedOver, kill('0'), exits('0'), start(2), observe, exits('1'), observe],
      ...[term('2'), exits('2'), observe, start(2, { name: '2 again' }), exits('2 again')],
    ],
  },
  {
    name: 'a child of a blocked epoch gets no response',
    steps: [
      ...handedOver,
      kill('0'),
      exits('0'),
      blocked('1'),
      start(2),
      observe,
      exits('1'),
      kill('2'),
      exits('2'),
      observe,
    ],
  },
  {
    name: 'a child is refused by a parent that is not live and has lost its own parent',
    steps: [...waitingChild, kill('0'), exits('0'), start(2), exits('2'), exits('1'), observe],
  },
  {
    name: 'a child that receives SIGTERM before it is live, while its grandparent drains, exits with its parent',
    steps: [
      ...[...handedOver, start(2, { configuration: 'never there' }), exits('0'), adminOpen('2'), observe],
      ...[term('2'), exits('1', '2'), observe],
    ],
  },
  {
    name: 'a doomed child blocks immediately when it receives SIGTERM',
    steps: [...handedOver, kill('0'), exits('0'), term('1'), blocked('1'), observe, exits('1')],
  },
  {
    name: 'a child without a parent aborts and leaves its mark set; a new epoch 0 starts normally',
    steps: [
      ...[...servingSteps, kill('0'), exits('0'), start(1), exits('1')],
      ...[
        start(1, { name: repeatedChild }),
        exits(repeatedChild),
        start(0, { name: '0 again' }),
        live('0 again'),
        observe,
      ],
    ],
  },
  {
    name: 'a child whose epoch skips two numbers finds no parent, aborts and leaves its mark set',
    steps: [...servingSteps, start(2), exits('2'), observe, start(1), exits('1'), observe],
  },
  {
    name: 'a parent exits after its parent-shutdown time in a hot restart',
    steps: [...servingSteps, observe, start(1), live('1'), observe, exits('0'), observe],
  },
  {
    name: 'three consecutive hot restarts succeed',
    steps: [
      ...[...servingSteps, start(1), live('1'), exits('0')],
      ...[start(2), live('2'), exits('1'), start(3), live('3'), observe, exits('2'), observe],
    ],
  },
  {
    name: "the child's parent-shutdown time applies, not that of the parent",
    steps: [start(0, longDrain), live('0'), start(1, { parentShutdownMs: 5_000 }), live('1'), exits('0')],
  },
  {
    name: 'a starting child ends the drain of its grandparent early',
    steps: [...handedOver, start(2, { configuration: 'awaited' }), exits('0'), observe, live('2'), observe, exits('1')],
  },
  {
    name: 'a child is refused while its parent initializes, and accepted later',
    steps: [
      ...[
        ...servingSteps,
        start(1, { configuration: 'awaited' }),
        adminOpen('1'),
        observe,
        start(2),
        exits('2'),
        observe,
      ],
      ...[live('1'), exits('0'), start(2, { name: '2 again' }), live('2 again'), observe],
    ],
  },
  {
    name: 'after a child is killed before it is live, the next child is refused until the mark is cleared',
    steps: [
      ...[
        ...waitingChild,
        observe,
        kill('1'),
        exits('1'),
        observe,
        start(1, { name: repeatedChild }),
        exits(repeatedChild),
        observe,
      ],
      ...[repair, start(1, { name: 'third' }), live('third'), observe, exits('0'), observe],
    ],
  },
  {
    name: 'a child that crashes before it is live leaves the mark set',
    steps: [...waitingChild, crash('1'), exits('1'), observe, start(1, { name: repeatedChild }), exits(repeatedChild)],
  },
  {
    name: 'a child that receives SIGTERM before it is live exits with its parent',
    steps: [...waitingChild, term('1'), exits('0', '1'), observe],
  },
  {
    name: 'an epoch 0 that is not live exits on SIGTERM',
    steps: [start(0, { configuration: 'never there' }), adminOpen('0'), observe, term('0'), exits('0'), observe],
  },
  {
    name: 'a parent with a stale mark serves and refuses its children',
    steps: [
      ...servingSteps,
      mark,
      observe,
      start(1),
      exits('1'),
      observe,
      repair,
      observe,
      start(1, { name: repeatedChild }),
      live(repeatedChild),
    ],
  },
  {
    name: 'the newest epoch exits with its draining parent on SIGTERM',
    steps: [...handedOver, term('1'), exits('0', '1'), observe],
  },
  {
    name: 'after a crash of the newest epoch while its parent drains, no epoch serves until the same number starts again',
    steps: [
      ...[...handedOver, observe, crash('1'), exits('1'), observe],
      ...[start(1, { name: repeatedChild }), live(repeatedChild), observe, exits('0'), observe],
    ],
  },
  {
    name: 'after a kill of the newest epoch while its parent drains, no epoch serves until the same number starts again',
    steps: [
      ...handedOver,
      kill('1'),
      exits('1'),
      observe,
      start(1, { name: repeatedChild }),
      live(repeatedChild),
      exits('0'),
    ],
  },
  {
    name: 'epoch 0 starts immediately after a crash of the last epoch',
    steps: [...servingSteps, crash('0'), exits('0'), observe, start(0, { name: '0 again' }), live('0 again'), observe],
  },
  {
    name: 'a second epoch 0 gets no address and does not affect the first one',
    steps: [
      ...[...servingSteps, start(0, { name: 'second 0' }), exits('second 0'), observe],
      ...[start(1), live('1'), exits('0'), observe],
    ],
  },
  {
    name: 'an epoch 0 started next to epoch 1 gets no address and damages the shared memory',
    steps: [
      ...[...servingSteps, start(1), live('1'), exits('0'), start(0, { name: 'second 0' }), exits('second 0'), observe],
      ...[start(2), exits('2'), observe],
    ],
  },
  {
    name: 'shared memory that epoch 0 has damaged is usable after its mark is cleared',
    steps: [
      ...[...servingSteps, start(1), live('1'), exits('0'), start(0, { name: 'second 0' }), exits('second 0')],
      ...[repair, start(2), live('2'), observe, exits('1'), observe],
    ],
  },
  {
    name: 'a second epoch 0 does not change the mark',
    steps: [...servingSteps, mark, start(0, { name: 'second 0' }), exits('second 0'), start(1), exits('1'), observe],
  },
  {
    name: 'an epoch 0 started next to a draining epoch 1 whose child has crashed serves, and epoch 1 keeps running',
    steps: [
      ...[...servingSteps, start(1), live('1'), exits('0'), start(2, longDrain), live('2'), crash('2'), exits('2')],
      ...[
        start(0, { name: '0 again' }),
        live('0 again'),
        observe,
        start(1, { name: repeatedChild }),
        exits(repeatedChild),
        observe,
      ],
      ...[term('1'), exits('1'), observe, start(1, { name: 'third 1' }), live('third 1'), exits('0 again'), observe],
    ],
  },
  {
    name: 'a child whose epoch skips three numbers finds its address in use and affects no other epoch',
    steps: [...servingSteps, start(3), exits('3'), observe, start(1), live('1'), exits('0')],
  },
  {
    name: 'a child whose epoch skips four numbers works by accident',
    steps: [...servingSteps, start(4), live('4'), observe, exits('0'), observe],
  },
  {
    name: 'a child of an unused base ID has no shared memory',
    steps: [start(1), exits('1'), observe],
  },
  {
    name: 'a child aborts if the shared memory of its parent was removed, and the parent continues to serve',
    steps: [...servingSteps, loseMemory, start(1), exits('1'), observe],
  },
  {
    name: 'a child with an invalid bootstrap leaves the mark set, and its parent keeps its admin port',
    steps: [
      ...servingSteps,
      start(1, { configuration: 'broken' }),
      exits('1'),
      observe,
      start(1, { name: repeatedChild }),
      exits(repeatedChild),
    ],
  },
  {
    name: 'an epoch 0 with an invalid bootstrap does not affect the next epoch 0',
    steps: [start(0, { configuration: 'broken' }), exits('0'), start(0, { name: '0 again' }), live('0 again'), observe],
  },
  {
    name: 'a child whose listener port is in use leaves the mark set, and its parent has lost its admin port',
    steps: [
      ...[...servingSteps, start(1, { configuration: 'listener port taken' }), exits('1'), observe],
      ...[start(1, { name: repeatedChild }), exits(repeatedChild), observe],
    ],
  },
  {
    name: 'the parent of a child whose admin port is in use has lost its own admin port',
    steps: [
      ...[...servingSteps, start(1, { configuration: 'admin port taken' }), exits('1'), observe],
      ...[start(1, { name: repeatedChild }), exits(repeatedChild)],
    ],
  },
  {
    name: 'Envoys of two base IDs share the listener port, and each drains and exits independently',
    steps: [
      ...[...servingSteps, start(0, { name: 'other 0', family: 'beside' }), live('other 0'), observe],
      ...[drain('0'), observe, term('0'), exits('0'), observe],
      ...[start(1, { name: 'other 1', family: 'beside' }), live('other 1'), observe, exits('other 0'), observe],
    ],
  },
  {
    name: 'an Envoy with another base ID replaces a doomed child before it aborts',
    steps: [
      ...[...handedOver, kill('0'), exits('0')],
      ...[start(0, { name: 'other 0', family: 'beside' }), live('other 0'), drain('1'), kill('1'), exits('1'), observe],
    ],
  },
  {
    name: 'listeners that drain gradually accept connections until the end of the drain time',
    steps: [
      start(0, { drainMs: 3_000 }),
      live('0'),
      drainGradually('0'),
      observe,
      closes('0'),
      observe,
      term('0'),
      exits('0'),
    ],
  },
  {
    name: 'a child takes over from a parent that drains gradually',
    steps: [
      ...[start(0, { drainMs: 30_000 }), live('0'), drainGradually('0'), observe],
      ...[start(1), live('1'), observe, exits('0'), observe],
    ],
  },
  {
    name: 'a child opens the listeners that its parent has drained',
    steps: [...servingSteps, drain('0'), observe, start(1), live('1'), observe, exits('0'), observe],
  },
  {
    name: 'SIGUSR1 reopens log files and has no other effect',
    steps: [
      ...servingSteps,
      reopenLogs('0'),
      observe,
      start(1),
      live('1'),
      reopenLogs('0'),
      reopenLogs('1'),
      exits('0'),
      observe,
    ],
  },
  {
    name: 'a child of a hanging parent gets no response',
    steps: [
      ...servingSteps,
      hang('0'),
      start(1),
      observe,
      kill('0'),
      exits('0'),
      observe,
      term('1'),
      exits('1'),
      observe,
    ],
  },
  {
    name: 'SIGKILL ends a hanging Envoy that does not react to SIGTERM',
    steps: [...servingSteps, hang('0'), kill('0'), exits('0'), observe],
  },
];
