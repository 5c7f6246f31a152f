// cost.ts - what an update of the page costs in the browser, by view, with 256 workers.
//
//     BALANCEROUTE_BIN=... scripts/web_node tests/browser/cost.ts
import { isReady, openBrowser, openPage, TestFleet } from './fleet.ts';

const RANKS = Number(process.env['RANKS'] ?? 256);
const SECONDS = 15;

const browser = await openBrowser();
const fleet = await TestFleet.start({ ranks: RANKS, slots: 4, perTokenMs: 0 });
try {
  fleet.send(40, RANKS * 3);
  const { page } = await openPage(browser, fleet.admin);
  await isReady(page);
  const profiler = await page.context().newCDPSession(page);
  await profiler.send('Performance.enable');
  const figures = async (): Promise<Record<string, number>> => {
    const { metrics } = await profiler.send('Performance.getMetrics');
    const told = async (name: string): Promise<number> => Number(await page.getAttribute('#foot', `data-${name}`));
    const [updates, scripting] = [await told('updates'), (await told('scripting-ms')) / 1000];
    return { ...Object.fromEntries(metrics.map(({ name, value }) => [name, value])), updates, scripting };
  };
  await page.waitForTimeout(10_000); // lines need some length
  console.log(`${RANKS} workers, ${SECONDS} s a view`);
  console.log('view        updates/s  scripting ms  layout+style ms  whole task ms   (of one update)');
  for (const view of ['now', 'decisions', 'workers', 'config']) {
    await page.click(`a[data-view=${view}]`);
    await page.waitForTimeout(1500);
    const before = await figures();
    await page.waitForTimeout(1000 * SECONDS);
    const after = await figures();
    const spent = (name: string): number => (after[name] ?? 0) - (before[name] ?? 0);
    const each = (...names: string[]): string =>
      ((1000 * names.reduce((all, name) => all + spent(name), 0)) / spent('updates')).toFixed(2).padStart(12);
    console.log(
      view.padEnd(10), (spent('updates') / SECONDS).toFixed(1).padStart(10), each('scripting'),
      each('LayoutDuration', 'RecalcStyleDuration').padStart(16), each('TaskDuration').padStart(14),
    );
  }
} finally {
  await browser.close();
  await fleet.end();
}
