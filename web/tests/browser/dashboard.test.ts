// The dashboard in a real browser, in front of a running fleet: what it shows is what the engines say, and it does what
// an operator asks of it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { isReady, openBrowser, openPage, soon, TestFleet } from './fleet.ts';

const RANKS = 4;
const SLOTS = 16;

let browser: Browser;
let fleet: TestFleet;

before(async () => {
  browser = await openBrowser();
  fleet = await TestFleet.start({ ranks: RANKS, slots: SLOTS });
  fleet.send(3, 32);
});

after(async () => {
  await browser?.close();
  await fleet?.end();
});

const text = async (page: Page, selector: string): Promise<string> =>
  ((await page.textContent(selector)) ?? '').replaceAll('\u202f', ' ').replaceAll('\u2212', '-');
const number = async (page: Page, selector: string): Promise<number> => Number.parseFloat(await text(page, selector));

async function open(view: string): Promise<{ page: Page; faults: string[] }> {
  const opened = await openPage(browser, `${fleet.admin}/#/${view}`);
  await isReady(opened.page);
  return opened;
}

async function closed({ page, faults }: { page: Page; faults: string[] }): Promise<void> {
  await page.context().close();
  assert.deepEqual(faults, []);
}

interface EngineState {
  ranks: { role: string; rank: number; running: number }[];
}
test('the figures are those that the engines measure', async () => {
  const opened = await open('now');
  const { page } = opened;
  await soon('work is under way', async () => (await number(page, '#tile-running .value')) > SLOTS);
  // Running: both change from step to step, so they agree at some moment soon.
  await soon('the page and the engines run equally many', async () => {
    const shown = await number(page, '#tile-running .value');
    const { ranks } = await fleet.fromEngines<EngineState>('/emulator/state');
    const running = ranks.reduce((all, rank) => all + rank.running, 0);
    return Math.abs(shown - running) <= 2;
  });
  // The step that the router sees is the engines' own: 10 ms and what tokens cost.
  const step = await number(page, '#tile-step .value');
  assert.ok(step > 10 && step < 40, `step time ${step} ms`);
  assert.match(await text(page, '#tile-running .hint'), new RegExp(`of ${RANKS * SLOTS} slots`));
  assert.ok((await number(page, '#tile-tokens .value')) > 0);
  await closed(opened);
});

test('the bars are the loads of the ledger, and keys tell each worker', async () => {
  const opened = await open('now');
  const { page } = opened;
  const canvas = page.locator('.bars canvas');
  assert.match((await canvas.getAttribute('aria-label')) ?? '', /^Load by worker. Most loaded: /);
  await canvas.focus();
  await page.keyboard.press('ArrowRight');
  const words = await text(page, '.chart-words');
  const found = /load ([\d ]+) tokens, margin ([\d ]+) tokens, (\d+) of 16 slots/.exec(words);
  assert.ok(found, words);
  const load = Number(found[1]?.replaceAll(' ', ''));
  const { workers } = await fleet.fromRouter<{ workers: { load_tokens: number }[] }>('/workers');
  // A moment later by then; a load moves by single requests, of at most some thousand tokens.
  assert.ok(Math.abs(load - (workers[0]?.load_tokens ?? 0)) < 10_000, `${words}; ledger ${workers[0]?.load_tokens}`);
  await closed(opened);
});

test('lines go on over the last minutes, with units', async () => {
  const opened = await open('now');
  const { page } = opened;
  await page.click('button[data-span="60"]');
  assert.equal(await page.getAttribute('button[data-span="60"]', 'aria-pressed'), 'true');
  assert.equal(await page.locator('.lines canvas').count(), 5);
  const titles = await page.locator('.lines figcaption').allTextContents();
  assert.deepEqual(titles, ['Loads', 'Idle share', 'Step time', 'Running and waiting', 'Throughput']);
  const legend = await text(page, '.lines .legend');
  assert.match(legend, /envelope \d/);
  await closed(opened);
});

test('decisions are told with their reasons', async () => {
  const opened = await open('decisions');
  const { page } = opened;
  await soon('decisions are listed', async () => (await page.locator('.decisions tbody tr').count()) > 3);
  await page.click('text=Pause');
  await page.locator('.decisions tbody button').first().click();
  const words = await text(page, '.detail');
  assert.match(words, /It brought [\d ]+ tokens to read a step/);
  assert.match(words, /Rule: /);
  assert.match(await text(page, '.decisions .lead'), /Policy br_fit\. Score: /);
  await closed(opened);
});

test('a worker is drained after a question, and taken back', async () => {
  const opened = await open('workers');
  const { page } = opened;
  const row = page.locator('tr[data-worker="2"]');
  const state = async (): Promise<string> => {
    const { workers } = await fleet.fromRouter<{ workers: { id: number; state: string }[] }>('/workers');
    return workers.find((worker) => worker.id === 2)?.state ?? '';
  };
  await row.locator('button').click();
  await page.click('dialog >> text=Cancel');
  assert.equal(await state(), 'ready');

  await row.locator('button').click();
  assert.match(await text(page, 'dialog h3'), /^Drain .* rank 2\?$/);
  await page.click('dialog button.danger');
  await soon('the router drains it', async () => (await state()) === 'draining');
  await soon('the page shows it', async () => (await row.locator('.pill').first().textContent()) === 'draining');
  assert.match(await text(page, '.said'), /is being drained/);

  await row.locator('button').click();
  await page.click('dialog button.danger, dialog button.primary');
  await soon('the router takes it back', async () => (await state()) === 'ready');
  await closed(opened);
});

test('the table of workers says what the ledger says', async () => {
  const opened = await open('workers');
  const { page } = opened;
  assert.equal(await page.locator('.workers tbody tr').count(), RANKS);
  assert.match(await text(page, '.workers .lead'), new RegExp(`${RANKS} of ${RANKS} workers take requests`));
  await page.fill('input[type=search]', 'rank 3');
  await page.fill('input[type=search]', 'no such worker');
  await soon('no row is left', async () => (await page.locator('.workers tbody tr:visible').count()) === 0);
  await closed(opened);
});

test('without a shadow the page says how to configure one', async () => {
  const opened = await open('compare');
  assert.match(await text(opened.page, '.compare'), /No shadow is configured.*shadow: \{policy: least_tokens, mode: world\}/s);
  await closed(opened);
});

test('a shadow is set beside the policy that decides', async () => {
  // The first event of the stream, as a router with a shadow would send it; the connection ends with it.
  const reader = (await fetch(`${fleet.admin}/live`)).body?.getReader();
  let told = '';
  while (!told.includes('\n\n')) told += new TextDecoder().decode((await reader?.read())?.value);
  await reader?.cancel();
  const message = JSON.parse(told.slice(told.indexOf('data: ') + 6, told.indexOf('\n\n'))) as { state: { fleets: { main: object } } };
  const shadows = {
    world: { policy: 'least_tokens', mode: 'world', waiting_requests: 7, left_out: 0, groups: { 0: { load_idle_fraction: 0.25, live_load_idle_fraction: 0.05, imbalance_tokens: 900 } } },
    step: { policy: 'least_tokens', mode: 'step', rounds: 200, worse_rounds: 50, regret_tokens: -24000, stopped: 'three were slow' },
  };
  const words = {
    world: /5\.0 % of reading capacity was unused under br_fit; under least_tokens it would have been 25\.0 %/,
    step: /In 25\.0 % of 200 rounds least_tokens would have .* br_fit left 120 tokens of imbalance less.* asked no more: three were slow\./,
  };
  for (const mode of ['world', 'step'] as const) {
    Object.assign(message.state.fleets.main, { shadow: shadows[mode] });
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.route('**/live', (route) =>
      route.fulfill({ contentType: 'text/event-stream', body: `event: state\ndata: ${JSON.stringify(message)}\n\n` }));
    await page.goto(`${fleet.admin}/#/compare`);
    await isReady(page);
    assert.match(await text(page, '.verdict'), words[mode]);
    assert.equal(await page.isVisible('.compare pre'), false);
    await context.close();
  }
});

test('what a shadow says on real traffic is shown', async () => {
  for (const mode of ['world', 'step'] as const) {
    const shadowed = await TestFleet.start({ ranks: 2, slots: 8, more: { shadow: { policy: 'round_robin', mode } } });
    try {
      shadowed.send(3, 16);
      const opened = await openPage(browser, `${shadowed.admin}/#/compare`);
      const { page } = opened;
      await isReady(page);
      const words = mode === 'world' ? /unused under br_fit; under round_robin it would have been [\d.]+ %/ : /of [\d ]+ rounds round_robin/;
      await soon('the two are compared', async () => words.test(await text(page, '.verdict')));
      await page.goto(`${shadowed.admin}/#/decisions`);
      const cells = page.locator('.decisions tbody .shadow-choice');
      await soon('the shadow has chosen too', async () => (await cells.allTextContents()).some((cell) => /^shadow: (the same|rank \d)$/.test(cell)));
      await page.click('text=Pause');
      await page.locator('.decisions tbody button').first().click();
      assert.match(await text(page, '.detail'), /Shadow round_robin (would have|had not)/);
      await closed(opened);
    } finally {
      await shadowed.end();
    }
  }
});

test('settings are shown with their origins', async () => {
  const opened = await open('config');
  const { page } = opened;
  await soon('they are there', async () => (await page.locator('.config tbody tr').count()) > 40);
  await page.check('#only-given');
  await page.fill('input[type=search]', 'groups[0].slots');
  await soon('one is left', async () => (await page.locator('.config tbody tr').count()) === 1);
  const row = await text(page, '.config tbody tr');
  assert.match(row, /^fleets\[0\]\.groups\[0\]\.slots16.*router\.yaml/);
  await closed(opened);
});

test('keys lead from view to view', async () => {
  const opened = await open('now');
  const { page } = opened;
  for (const [key, view, heading] of [['2', 'decisions', 'Decisions'], ['3', 'workers', 'Workers'], ['5', 'config', 'Settings in effect']]) {
    await page.keyboard.press(key ?? '');
    await page.waitForSelector(`.${view}`);
    assert.equal(await text(page, `.${view} h2`), heading);
    assert.equal(await page.getAttribute(`a[data-view=${view}]`, 'aria-current'), 'page');
  }
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('type')), 'search');
  await closed(opened);
});

test('light and dark are as the system has them, or as chosen', async () => {
  const shade = (page: Page): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await openPage(browser, fleet.admin, { colorScheme: 'dark' });
  const light = await openPage(browser, fleet.admin, { colorScheme: 'light' });
  const [darkShade, lightShade] = [await shade(dark.page), await shade(light.page)];
  assert.notEqual(darkShade, lightShade);
  await light.page.click('#theme'); // light
  await light.page.click('#theme'); // dark
  assert.equal(await shade(light.page), darkShade);
  await light.page.reload();
  assert.equal(await shade(light.page), darkShade, 'it is remembered');
  await closed(dark);
  await closed(light);
});

test('on a phone nothing is wider than the screen', async () => {
  const opened = await openPage(browser, fleet.admin, { viewport: { width: 360, height: 740 }, isMobile: true });
  const { page } = opened;
  await isReady(page);
  for (const view of ['now', 'decisions', 'workers', 'compare', 'config']) {
    await page.click(`a[data-view=${view}]`);
    await page.waitForSelector(`.${view}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view} is ${wide} px too wide`);
  }
  await closed(opened);
});

test('a router that comes back is found again', async () => {
  const { page, faults } = await open('now');
  await fleet.stopTraffic();
  await fleet.stopRouter();
  await page.waitForSelector('#banner:visible');
  assert.equal(await text(page, '#status'), 'reconnecting');
  await fleet.startRouter();
  await page.waitForSelector('#status.live');
  await soon('its state is shown', async () => (await text(page, '#tile-running .value')) === '0');
  assert.equal(await page.isVisible('#banner'), false);
  await page.context().close();
  assert.ok(faults.every((fault) => fault.includes('ERR_CONNECTION_REFUSED') || fault.includes('ERR_')), faults.join('\n'));
});

test('with a token the page asks for it, once', async () => {
  const closedFleet = await TestFleet.start({ ranks: 2, slots: 4, token: 'correct horse' });
  try {
    const { page } = await openPage(browser, closedFleet.admin);
    await page.fill('dialog.token input', 'wrong');
    await page.click('dialog.token button');
    await page.waitForSelector('dialog.token .warning');
    await page.fill('dialog.token input', 'correct horse');
    await page.click('dialog.token button');
    await isReady(page);
    await page.reload();
    await isReady(page);
    assert.equal(await page.locator('dialog.token').count(), 0);
    await page.context().close();
  } finally {
    await closedFleet.end();
  }
});

test('256 workers are shown, and what an update costs is told', async (t) => {
  const large = await TestFleet.start({ ranks: 256, slots: 4, perTokenMs: 0 });
  try {
    large.send(20, 300);
    const { page, faults } = await openPage(browser, large.admin);
    await isReady(page);
    const told = async (name: string): Promise<number> => Number(await page.getAttribute('#foot', `data-${name}`));
    for (const view of ['now', 'workers', 'decisions']) {
      await page.click(`a[data-view=${view}]`);
      await page.waitForSelector(`.${view}`);
      const [updates, scripting] = [await told('updates'), await told('scripting-ms')];
      await soon('the page is updated', async () => (await told('updates')) >= updates + 15);
      const each = ((await told('scripting-ms')) - scripting) / ((await told('updates')) - updates);
      t.diagnostic(`${view}: ${each.toFixed(2)} ms of scripting an update`);
    }
    await page.click('a[data-view=workers]');
    assert.equal(await page.locator('.workers tbody tr').count(), 256);
    assert.match(await text(page, '.workers .lead'), /256 of 256 workers take requests/);
    await page.context().close();
    assert.deepEqual(faults, []);
  } finally {
    await large.end();
  }
});
