import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { adsConnectionMachine } from '../../../machines/discovery/ads-connection.machine.ts';
import { discoveryMachine } from '../../../machines/discovery/discovery.machine.ts';
import { machinesOf, statechartOf } from '../../runtime/trace/statechart.ts';
import { chartsOf } from '../statechart/charts.ts';
import { chartKey, type KnownCharts } from './known-charts.ts';

/** Draws all machines that our programs run: for the build. */
export async function drawOwnCharts(): Promise<KnownCharts> {
  const machines = machinesOf(agentMachine, discoveryMachine, adsConnectionMachine).map(statechartOf);
  const charts = await chartsOf(machines);
  return Object.fromEntries(machines.map((chart) => [chartKey(chart), charts[chart.id]!]));
}
