//! The body of a page with holes: what is before the first of them is sent at once, and the rest when it is known.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::body::{Body, Bytes};
use tokio::sync::mpsc;

use super::scans::Waiting;
use crate::live::Received;

/// Sends what is known around the holes. `fill` says what goes into them, and is told when the reader has gone.
pub(super) fn body<F>(known: Vec<String>, fill: impl FnOnce(Arc<AtomicBool>) -> F) -> Body
where
    F: Future<Output = Vec<String>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(2);
    let waiting = Waiting(Arc::default());
    let filling = fill(waiting.0.clone());
    tokio::spawn(async move {
        let _waiting = waiting;
        let mut known = known.into_iter();
        let beginning = known.next().unwrap_or_default();
        drop(sender.send(Ok(beginning.into())).await);
        tokio::select! {
            // Whoever asks for the head alone is gone at once: nothing is begun for them.
            biased;
            () = sender.closed() => {}
            filled = filling => drop(sender.send(Ok(joined(filled, known.as_slice()).into())).await),
        }
    });
    Body::from_stream(Received(receiver))
}

/// What goes into the holes, each with what stands behind it. If it is less, the first holes stay empty.
fn joined(filled: Vec<String>, behind: &[String]) -> String {
    let empty = behind.len().saturating_sub(filled.len());
    let filled = std::iter::repeat_n(String::new(), empty).chain(filled);
    filled.zip(behind).map(|(filled, behind)| filled + behind).collect()
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::Ordering;

    use futures_core::Stream;
    use tokio::sync::oneshot;

    use super::*;

    /// The next piece, as text.
    async fn next(body: &mut axum::body::BodyDataStream) -> Option<String> {
        let piece = std::future::poll_fn(|context| Pin::new(&mut *body).poll_next(context)).await?;
        Some(String::from_utf8(piece.unwrap().to_vec()).unwrap())
    }

    fn known() -> Vec<String> {
        ["<a>", "</a><b>", "</b>"].map(str::to_owned).to_vec()
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test);
    }

    #[test]
    fn the_beginning_is_sent_before_the_rest_is_known() {
        run(async {
            let (release, held) = oneshot::channel::<Vec<String>>();
            let mut body = body(known(), |_| async { held.await.unwrap() }).into_data_stream();
            assert_eq!(next(&mut body).await.as_deref(), Some("<a>"));
            release.send(vec!["1".to_owned(), "2".to_owned()]).unwrap();
            assert_eq!(next(&mut body).await.as_deref(), Some("1</a><b>2</b>"));
            assert_eq!(next(&mut body).await, None);
        });
    }

    #[test]
    fn why_the_rest_is_not_known_stands_in_the_last_hole() {
        run(async {
            let mut body = body(known(), |_| async { vec!["no".to_owned()] }).into_data_stream();
            assert_eq!(next(&mut body).await.as_deref(), Some("<a>"));
            assert_eq!(next(&mut body).await.as_deref(), Some("</a><b>no</b>"));
        });
    }

    #[test]
    fn the_work_is_given_up_when_the_reader_goes_away() {
        run(async {
            let (told, given_up) = oneshot::channel();
            let (begun_sender, begun) = oneshot::channel();
            let mut body = body(known(), |given_up| async {
                told.send(given_up).unwrap();
                begun_sender.send(()).unwrap();
                std::future::pending().await
            })
            .into_data_stream();
            assert_eq!(next(&mut body).await.as_deref(), Some("<a>"));
            begun.await.unwrap();
            let given_up = given_up.await.unwrap();
            assert!(!given_up.load(Ordering::Relaxed));
            drop(body);
            while !given_up.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
        });
    }

    #[test]
    fn nothing_is_begun_for_a_reader_who_has_gone() {
        run(async {
            let (begun_sender, begun) = oneshot::channel::<()>();
            drop(body(known(), |_| async {
                begun_sender.send(()).unwrap();
                Vec::new()
            }));
            assert!(begun.await.is_err());
        });
    }
}
