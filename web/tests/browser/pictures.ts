// pictures.ts - the pictures of every view in docs/pictures: light, dark and as wide as a phone.
//
//     BALANCEROUTE_BIN=... scripts/web_node tests/browser/pictures.ts
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { isReady, openBrowser, openPage, TestFleet } from './fleet.ts';
import { root } from './process.ts';

const VIEWS = ['now', 'decisions', 'workers', 'compare', 'config'] as const;
const LOOKS = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 940 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 940 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, isMobile: true, deviceScaleFactor: 1.5 },
} as const;
const HISTORY_S = Number(process.env['HISTORY_S'] ?? 75);

const folder = `${root}docs/pictures`;
mkdirSync(folder, { recursive: true });
const browser = await openBrowser();
const fleet = await TestFleet.start({
  ranks: 8,
  slots: 16,
  dialect: 'vllm_nixl',
  ...(process.env['FLEET_MORE'] ? { more: JSON.parse(process.env['FLEET_MORE']) as Record<string, unknown> } : {}),
});
try {
  fleet.send(26, 110);
  await new Promise((resolve) => setTimeout(resolve, 1000 * HISTORY_S));
  for (const [look, options] of Object.entries(LOOKS)) {
    const { page } = await openPage(browser, fleet.admin, options);
    await isReady(page);
    for (const view of VIEWS) {
      await page.click(`a[data-view=${view}]`);
      await page.waitForSelector(`.${view}`);
      await page.waitForTimeout(1200);
      if (view === 'decisions') {
        await page.click('.decisions .card-head button');
        await page.locator('.decisions tbody button').first().click();
      }
      await page.screenshot({ fullPage: view === 'now', path: `${folder}/${view}-${look}.png` });
    }
    await page.context().close();
  }
} finally {
  await browser.close();
  await fleet.end();
}
// A third of the size, where pngquant is installed.
spawnSync('pngquant', ['--force', '--ext', '.png', '--skip-if-larger', '--strip', ...readdirSync(folder).map((name) => `${folder}/${name}`)]);
